package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// initialPIDNamespace is the inode of the host's PID namespace: PROC_PID_INIT_INO of include/linux/proc_ns.h.
const initialPIDNamespace = 0xEFFFFFFC

// OutsideHostPIDs tells whether we are in another PID namespace than the host's. There v1 leaves processes of other
// namespaces out of cgroup.procs and tasks altogether (kernel/cgroup/cgroup-v1.c, pidlist_array_load, takes PIDs above
// 0 only), where v2 lists them as 0. proc is the proc file system, os.DirFS("/proc"). The error says that it cannot be
// told.
func OutsideHostPIDs(proc fs.FS) (bool, error) {
	info, err := fs.Stat(proc, "self/ns/pid")
	if err != nil {
		return false, fmt.Errorf("the PID namespace cannot be told: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false, errors.New("the PID namespace cannot be told: self/ns/pid has no inode here")
	}
	return stat.Ino != initialPIDNamespace, nil
}
