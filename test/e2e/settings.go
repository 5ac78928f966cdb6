package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// settings are a cgroup's files of the cpu and cpuset controllers, as the kernel has them.
type settings struct{ path string }

func newSettings(path string) settings { return settings{path} }

// Files of both versions; what a host does not have is left out.
var settingFiles = map[string][]string{
	"cpu":    {"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.shares"},
	"cpuset": {"cpuset.cpus", "cpuset.mems"},
	"":       {"cpu.max", "cpu.max.burst", "cpu.weight", "cpuset.cpus", "cpuset.mems"},
}

// read returns all settings as text, a line each. On version 2 a list of all CPUs that the parent has reads as none: restore may
// have written it in place of none, which kernels before 7.0 refuse while processes are inside.
func (c settings) read() string {
	var b strings.Builder
	for _, controller := range []string{"cpu", "cpuset", ""} {
		for _, name := range settingFiles[controller] {
			dir := filepath.Join("/sys/fs/cgroup", controller, c.path)
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			if all, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name+".effective")); err == nil && string(text) == string(all) {
				text = []byte("\n")
			}
			fmt.Fprintf(&b, "%s %s", name, text)
		}
	}
	return b.String()
}

// quota is the quota in microseconds, as text.
func (c settings) quota() string {
	text, _ := os.ReadFile(c.quotaFile())
	quota, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	return quota
}

// burst is the burst in microseconds, as text.
func (c settings) burst() string {
	text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup/cpu", c.path, "cpu.cfs_burst_us"))
	if err != nil {
		text, _ = os.ReadFile(filepath.Join("/sys/fs/cgroup", c.path, "cpu.max.burst"))
	}
	return strings.TrimSpace(string(text))
}

// quotaFile begins with the quota.
func (c settings) quotaFile() string {
	name := filepath.Join("/sys/fs/cgroup/cpu", c.path, "cpu.cfs_quota_us")
	if _, err := os.Stat(name); err != nil {
		name = filepath.Join("/sys/fs/cgroup", c.path, "cpu.max")
	}
	return name
}

// setQuota sets the quota of a cgroup of our own, for a period of 100 ms; -1 is none.
func (c settings) setQuota(us int) error {
	name, text := c.quotaFile(), strconv.Itoa(us)
	if filepath.Base(name) == "cpu.max" {
		text = strings.Replace(text, "-1", "max", 1) + " 100000"
	}
	return os.WriteFile(name, []byte(text), 0o600)
}

func equal(what, got, want string) error {
	if got != want {
		return fmt.Errorf("%s is %q, want %q", what, got, want)
	}
	return nil
}

func value(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}
