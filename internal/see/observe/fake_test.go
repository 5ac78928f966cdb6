package observe

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// fake is a cgroup tree in a temporary directory: plain files, whose content only the test changes.
type fake struct {
	t    *testing.T
	host *cgroup.Host
	dir  map[cgroup.Controller]string
	now  time.Time
	// identities are those of the files that were opened, by path. Plain files, unlike those of kernfs, may get the
	// inode of a removed one.
	identities   map[string]uint64
	lastIdentity uint64
}

// newFake makes a host with one v2 tree, or with three separate v1 trees.
func newFake(t *testing.T, v cgroup.Version, root string) *fake {
	t.Helper()
	f := &fake{t: t, dir: map[cgroup.Controller]string{}, identities: map[string]uint64{}, now: time.Unix(1000, 0)}
	proc := t.TempDir()
	var mounts strings.Builder
	for i, c := range cgroup.Controllers() {
		if v == cgroup.V2 && i > 0 {
			f.dir[c] = f.dir[cgroup.CPU]
			continue
		}
		f.dir[c] = t.TempDir()
		kind, option := "cgroup", ","+string(c)
		if v == cgroup.V2 {
			kind, option = "cgroup2", ""
			f.write(filepath.Join(f.dir[c], "cgroup.controllers"), "cpuset cpu\n")
		}
		f.write(filepath.Join(f.dir[c], "cgroup.procs"), "")
		fmt.Fprintf(&mounts, "%d 1 0:%d %s %s rw - %s %s rw%s\n", 30+i, 30+i, root, f.dir[c], kind, kind, option)
	}
	f.write(filepath.Join(proc, "self", "mountinfo"), mounts.String())
	f.write(filepath.Join(proc, "self", "cgroup"), "0::/\n")
	if err := os.MkdirAll(filepath.Join(proc, "self", "ns"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("cgroup:[4026531835]", filepath.Join(proc, "self", "ns", "cgroup")); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.host, err = cgroup.Open(proc); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fake) write(name, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// set writes a control file in place, as the kernel does: its identity stays.
func (f *fake) set(c cgroup.Controller, path, file, text string) {
	f.t.Helper()
	f.write(filepath.Join(f.dir[c], path, file), text+"\n")
}

// v1 fills a v1 cgroup: quota in us (-1: none), own throttled time, and own plus inherited.
func (f *fake) v1(path string, quota int, periods, throttled int, own, all, used time.Duration) {
	f.set(cgroup.CPU, path, "cgroup.procs", "")
	f.write(filepath.Join(f.dir[cgroup.CPU], path, "tasks"), "")
	f.set(cgroup.CPU, path, "cpu.cfs_quota_us", fmt.Sprint(quota))
	f.set(cgroup.CPU, path, "cpu.cfs_period_us", "100000")
	f.set(cgroup.CPU, path, "cpu.cfs_burst_us", "0")
	f.set(cgroup.CPU, path, cgroup.FileStat,
		fmt.Sprintf("nr_periods %d\nnr_throttled %d\nthrottled_time %d\nnr_bursts 0\nburst_time 0", periods, throttled, own.Nanoseconds()))
	f.set(cgroup.CPU, path, cgroup.FileStatLocal, fmt.Sprintf("throttled_time %d", all.Nanoseconds()))
	f.set(cgroup.CPUAcct, path, "cpuacct.usage", fmt.Sprint(used.Nanoseconds()))
	f.set(cgroup.CPUSet, path, "cpuset.effective_cpus", "0-3")
}

// v2 fills a v2 cgroup.
func (f *fake) v2(path, max string, periods, throttled int, own, all, used time.Duration) {
	f.set(cgroup.CPU, path, "cgroup.procs", "")
	f.set(cgroup.CPU, path, "cpu.max", max)
	f.set(cgroup.CPU, path, "cpu.max.burst", "0")
	f.set(cgroup.CPU, path, cgroup.FileStat, fmt.Sprintf(
		"usage_usec %d\nuser_usec 0\nsystem_usec 0\nnice_usec 0\ncore_sched.force_idle_usec 0\nnr_periods "+
			"%d\nnr_throttled %d\nthrottled_usec %d\nnr_bursts 0\nburst_usec 0",
		used.Microseconds(), periods, throttled, own.Microseconds()))
	f.set(cgroup.CPU, path, cgroup.FileStatLocal, fmt.Sprintf("throttled_usec %d", all.Microseconds()))
	f.set(cgroup.CPUSet, path, "cpuset.cpus.effective", "0-3")
}

// drop removes one file or a whole cgroup.
func (f *fake) drop(c cgroup.Controller, path, file string) {
	f.t.Helper()
	removed := filepath.Join(f.dir[c], path, file)
	if err := os.RemoveAll(removed); err != nil {
		f.t.Fatal(err)
	}
	maps.DeleteFunc(f.identities, func(name string, _ uint64) bool {
		return name == removed || strings.HasPrefix(name, removed+"/")
	})
}

// identity gives each file that was made a number that no other one gets, as kernfs does with inodes.
func (f *fake) identity(_ int, name string) (uint64, error) {
	if f.identities[name] == 0 {
		f.lastIdentity++
		f.identities[name] = f.lastIdentity
	}
	return f.identities[name], nil
}

func (f *fake) clock() time.Time { return f.now }

// options are those of a sampler of the fake, which has CPUs 0 and 1 unless they say otherwise.
func (f *fake) options(o Options) Options {
	o.Now, o.identity = f.clock, f.identity
	if o.Online.IsEmpty() && o.onlineDir == "" {
		o.Online = cpuset.New(0, 1)
	}
	return o
}

func (f *fake) sampler(o Options) *Sampler {
	s := NewSampler(f.host, f.options(o))
	f.t.Cleanup(s.Close)
	return s
}

func named(paths ...string) []container.Container {
	var containers []container.Container
	for _, p := range paths {
		containers = append(containers, container.Container{Name: p, Group: cgroup.Group{Path: p, CPUSetPath: p, CPUAcctPath: p}})
	}
	return containers
}

// window returns the observation of one second in which change runs.
func (f *fake) window(s *Sampler, containers []container.Container, change func()) []Observation {
	f.t.Helper()
	first, err := s.Sample(f.t.Context(), containers, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	change()
	f.now = f.now.Add(time.Second)
	second, err := s.Sample(f.t.Context(), containers, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	var observations []Observation
	for i := range second {
		observations = append(observations, Delta(&first[i], &second[i]))
	}
	return observations
}
