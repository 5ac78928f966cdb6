package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/wire"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	tracefs    = "/sys/kernel/tracing"
)

// mounts are the guest's file systems other than its root.
var mounts = []struct {
	fstype, target string
	optional       bool // a kernel without it is still a usable guest
}{
	{"proc", "/proc", false},
	{"sysfs", "/sys", false},
	{"devtmpfs", "/dev", false},
	{"devpts", "/dev/pts", false},
	{"tmpfs", "/dev/shm", false},
	{"tmpfs", "/tmp", false},
	{"tmpfs", "/run", false},
	{"bpf", "/sys/fs/bpf", true},
	{"tracefs", tracefs, true},
	{"debugfs", "/sys/kernel/debug", true},
}

// setUp makes the guest usable. Its root is as empty as an initramfs, or a distribution's, which stays as it is.
func setUp(plan wire.Plan) error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil && !m.optional {
			return err
		}
		if err := unix.Mount(m.fstype, m.target, m.fstype, 0, ""); err != nil && !m.optional {
			return fmt.Errorf("mount %s at %s: %w", m.fstype, m.target, err)
		}
	}
	for _, dir := range []string{wire.OutDir, "/root", "/etc", "/var/lib", "/var/log"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	files := map[string]string{"/etc/hosts": "127.0.0.1 localhost lab\n", "/etc/hostname": "lab\n"}
	if !plan.Packages {
		files["/etc/passwd"] = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
		files["/etc/group"] = "root:x:0:\nnogroup:x:65534:\n"
	}
	for file, text := range files {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for key, value := range map[string]string{"PATH": "/bin:/sbin:/usr/bin:/usr/sbin", "HOME": "/root",
		"TMPDIR": "/tmp", "UNTHROTTLE_LAB": "1"} {
		if err := os.Setenv(key, value); err != nil {
			return err
		}
	}
	var programs error
	if !plan.Packages {
		programs = exec.Command("/bin/busybox", "--install", "-s", "/bin").Run()
	}
	return errors.Join(
		programs,
		unix.Sethostname([]byte("lab")),
		loopbackUp(),
		mountCgroups(plan.CgroupVersion),
		keepTracepoints(tracefs),
		keepQuotas(plan.CgroupVersion),
	)
}

func mountCgroups(version int) error {
	if version == 1 {
		return mountCgroupsV1()
	}
	if err := unix.Mount("cgroup2", cgroupRoot, "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("mount cgroup2: %w", err)
	}
	controllers, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(controllers)) {
		if err := os.WriteFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			return fmt.Errorf("turn on controller %s: %w", c, err)
		}
	}
	return nil
}

func mountCgroupsV1() error {
	if err := unix.Mount("tmpfs", cgroupRoot, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, c := range []string{"cpu", "cpuacct", "cpuset", "memory", "pids", "freezer"} {
		dir := filepath.Join(cgroupRoot, c)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("cgroup", dir, "cgroup", 0, c); err != nil {
			return fmt.Errorf("mount cgroup v1 %s (kernels from 6.12 on are built without v1 cpuset): %w", c, err)
		}
	}
	unified := filepath.Join(cgroupRoot, "unified")
	if err := os.Mkdir(unified, 0o755); err != nil {
		return err
	}
	return unix.Mount("cgroup2", unified, "cgroup2", 0, "")
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring up loopback: %w", err)
	}
	return nil
}
