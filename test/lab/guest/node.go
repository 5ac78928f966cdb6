package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// serviceVariable is set for the node's service that follows the plan.
const serviceVariable = "UNTHROTTLE_LAB_SERVICE"

// Where a node's root is before it is the root, and what its service has. Its folder is on no disk: a node whose root is
// read-only has it too.
const (
	nextRoot = "/root"
	service  = "lab.service"
	unit     = `[Unit]
Description=The lab's steps
After=dbus.service systemd-udev-settle.service
[Service]
Type=exec
ExecStart=` + wire.InitPath + `
Environment=` + serviceVariable + `=1 UNTHROTTLE_LAB=1 HOME=/root
Delegate=yes
KillMode=process
OOMScoreAdjust=-900
StandardError=journal+console
`
)

// enterDisk makes the disk the root of this process, which stays the first one.
func enterDisk() error {
	if err := errors.Join(mountFirst(), loadModules(filepath.Join(wire.Dir, "modules"))); err != nil {
		return err
	}
	if err := mountDisks(0); err != nil {
		return err
	}
	return moveRoot()
}

// mountFirst mounts what is needed to find disks.
func mountFirst() error {
	for _, m := range mounts[:3] { // proc, sys, dev
		if err := errors.Join(os.MkdirAll(m.target, 0o755), unix.Mount(m.fstype, m.target, m.fstype, 0, "")); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

// mountDisks mounts the next root with flags, and the guest's files in it.
func mountDisks(flags uintptr) error {
	for _, m := range []struct {
		device, target string
		flags          uintptr
	}{{"/dev/vda", nextRoot, flags}, {"/dev/vdb", nextRoot + wire.Dir, unix.MS_RDONLY}} {
		if err := errors.Join(os.MkdirAll(m.target, 0o755), mountWhenThere(m.device, m.target, m.flags)); err != nil {
			return err
		}
	}
	return nil
}

// moveRoot makes the next root the root.
func moveRoot() error {
	if err := errors.Join(os.Chdir(nextRoot), unix.Mount(".", "/", "", unix.MS_MOVE, "")); err != nil {
		return err
	}
	return errors.Join(unix.Chroot("."), os.Chdir("/"))
}

// becomeNode mounts the node's disks and becomes its init. It returns only an error.
func becomeNode() error {
	if err := mountFirst(); err != nil {
		return err
	}
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	words := strings.Fields(string(line))
	if err := errors.Join(loadModules(filepath.Join(wire.Dir, "modules")), patchForNode(words)); err != nil {
		return err
	}
	var flags uintptr
	if slices.Contains(words, "ro") {
		flags = unix.MS_RDONLY
	}
	if err := mountDisks(flags); err != nil {
		return err
	}
	units := filepath.Join(nextRoot, "run", "systemd", "system")
	wanted := filepath.Join(units, "multi-user.target.wants")
	if err := errors.Join(
		unix.Mount("tmpfs", filepath.Join(nextRoot, "run"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"),
		os.MkdirAll(wanted, 0o755),
		os.WriteFile(filepath.Join(units, service), []byte(unit), 0o644),
		os.Symlink("../"+service, filepath.Join(wanted, service)),
	); err != nil {
		return err
	}
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if err := unix.Mount(dir, nextRoot+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	if err := moveRoot(); err != nil {
		return err
	}
	return syscall.Exec("/sbin/init", []string{"/sbin/init"}, []string{"TERM=linux"})
}

// mountWhenThere mounts a disk, which the kernel finds a little after its driver.
func mountWhenThere(device, target string, flags uintptr) (err error) {
	for range 100 {
		if err = unix.Mount(device, target, "ext4", flags, ""); !errors.Is(err, unix.ENOENT) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("mount %s at %s: %w", device, target, err)
	}
	return nil
}

// patchForNode has the kernel replace its code once, as for any guest. What it mounts for that is gone before the node's init
// looks. A kernel that keeps its secrets has no tracepoints for user space, and falls over when tracefs, in which it refused
// to make an instance, is unmounted (6.18: __list_del_entry_valid in tracefs_destroy_inode).
func patchForNode(words []string) error {
	const cgroups = "/sys/fs/cgroup"
	if err := unix.Mount("cgroup2", cgroups, "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("mount cgroup2: %w", err)
	}
	err := os.WriteFile(filepath.Join(cgroups, "cgroup.subtree_control"), []byte("+cpu"), 0)
	err = errors.Join(err, keepQuotas(2), unix.Unmount(cgroups, 0))
	if slices.Contains(words, "lockdown=confidentiality") {
		return err
	}
	if bad := unix.Mount("tracefs", tracefs, "tracefs", 0, ""); bad != nil {
		return errors.Join(err, fmt.Errorf("mount tracefs: %w", bad))
	}
	return errors.Join(err, keepTracepoints(tracefs), unix.Unmount(tracefs, 0))
}
