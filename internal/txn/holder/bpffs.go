package holder

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// mountBPF sees to it that maps can be pinned below dir. A container has no BPF file system there, so that one is mounted, for this
// mount namespace alone; undo unmounts it. A kill leaves it to the namespace, which ends with the container.
func mountBPF(dir string) (undo func(), err error) {
	var now unix.Statfs_t
	if err := unix.Statfs(dir, &now); err != nil {
		return nil, fmt.Errorf("scheduler: %s: %w; mount a BPF file system there: mount -t bpf bpf %s", dir, err, dir)
	}
	if now.Type == unix.BPF_FS_MAGIC {
		return func() {}, nil
	}
	if err := unix.Mount("bpf", dir, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			err = fmt.Errorf("%w (it needs CAP_SYS_ADMIN, and no security profile that forbids mounts)", err)
		}
		return nil, fmt.Errorf("scheduler: mount a BPF file system at %s: %w", dir, err)
	}
	return func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }, nil
}
