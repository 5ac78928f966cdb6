package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// initialPIDNamespace is the inode of the host's PID namespace: PROC_PID_INIT_INO of include/linux/proc_ns.h.
const initialPIDNamespace = 0xEFFFFFFC

// OutsideHostPIDs reports whether we are in a PID namespace other than the host's. There v1 omits processes of other
// namespaces from cgroup.procs and tasks (kernel/cgroup/cgroup-v1.c, pidlist_array_load, takes PIDs above 0 only). v2
// lists them as 0. proc is the proc file system, os.DirFS("/proc"). The error means that the namespace is unknown.
func OutsideHostPIDs(proc fs.FS) (bool, error) {
	info, err := fs.Stat(proc, "self/ns/pid")
	if err != nil {
		return false, fmt.Errorf("cannot determine the PID namespace: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false, errors.New("cannot determine the PID namespace: self/ns/pid has no inode here")
	}
	return stat.Ino != initialPIDNamespace, nil
}
