package require

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// V1 is where the cgroup v1 hierarchies that tests write to are mounted. The
// two paths are equal where both controllers share a hierarchy.
type V1 struct {
	CPU    string // has cpu.cfs_quota_us
	CPUSet string // has cpuset.cpus
}

// CgroupV1 needs the cpu and cpuset controllers on cgroup v1, with cgroups
// that can be made, limited and removed. It returns where they are mounted.
func CgroupV1(t testing.TB) V1 {
	t.Helper()
	var mounts V1
	need{name: needV1, runsIn: "a host with cgroup v1 cpu and cpuset"}.ask(t, func() (err error) {
		mounts, err = tryCgroupV1()
		return err
	})
	return mounts
}

// CgroupV2 needs a cgroup v2 hierarchy whose root hands the cpu and cpuset
// controllers to its children. It returns where it is mounted.
func CgroupV2(t testing.TB) string {
	t.Helper()
	var root string
	need{name: needV2, runsIn: inLab}.ask(t, func() (err error) {
		root, err = tryCgroupV2()
		return err
	})
	return root
}

func tryCgroupV1() (V1, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return V1{}, err
	}
	var found V1
	for _, m := range cgroupMounts(string(table)) {
		if m.version == 1 && slices.Contains(m.options, "cpu") && found.CPU == "" {
			found.CPU = m.point
		}
		if m.version == 1 && slices.Contains(m.options, "cpuset") && found.CPUSet == "" {
			found.CPUSet = m.point
		}
	}
	if found.CPU == "" || found.CPUSet == "" {
		return V1{}, errors.New("no cgroup v1 mount of cpu and cpuset")
	}
	if err := inTrialCgroup(found.CPU, setting{"cpu.cfs_quota_us", "100000"}); err != nil {
		return V1{}, err
	}
	// A new v1 cpuset is empty; copying the parent's is what any user does
	// first.
	var whole []setting
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(found.CPUSet, file))
		if err != nil {
			return V1{}, err
		}
		whole = append(whole, setting{file, strings.TrimSpace(string(value))})
	}
	return found, inTrialCgroup(found.CPUSet, whole...)
}

func tryCgroupV2() (string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for _, m := range cgroupMounts(string(table)) {
		if m.version != 2 {
			continue
		}
		// An empty cpuset.cpus means the parent's, so that the write
		// changes nothing and still shows that it is allowed.
		return m.point, inTrialCgroup(m.point, setting{"cpu.max", "max 100000"}, setting{"cpuset.cpus", "\n"})
	}
	return "", errors.New("no cgroup v2 mount")
}

type setting struct{ file, value string }

// inTrialCgroup makes a cgroup below root, writes the settings, and removes
// it.
func inTrialCgroup(root string, settings ...setting) (err error) {
	dir := filepath.Join(root, fmt.Sprintf("unthrottle-require-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	for _, s := range settings {
		file := filepath.Join(dir, s.file)
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("children of %s have no %s", root, s.file)
		}
		if err := os.WriteFile(file, []byte(s.value), 0); err != nil {
			return err
		}
	}
	return nil
}

type cgroupMount struct {
	version int
	point   string
	options []string // super options; on v1 the controllers are among them
}

// cgroupMounts reads /proc/self/mountinfo (proc_pid_mountinfo(5)): fields, a
// lone dash, then type, source and super options.
func cgroupMounts(mountinfo string) []cgroupMount {
	var found []cgroupMount
	for _, line := range strings.Split(mountinfo, "\n") {
		before, after, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(rest) < 3 {
			continue
		}
		m := cgroupMount{point: unescape(fields[4]), options: strings.Split(rest[2], ",")}
		switch rest[0] {
		case "cgroup":
			m.version = 1
		case "cgroup2":
			m.version = 2
		default:
			continue
		}
		found = append(found, m)
	}
	return found
}

// unescape undoes the four octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
