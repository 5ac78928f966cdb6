// Package stage is where tests provoke causes on this kernel: a subtree of cgroups in which scenarios of package provoke run, one
// after the other, while the test looks at them.
//
// A test that calls New needs writable cgroups and provoke.CPUs CPUs. The children are the test binary itself, whose TestMain calls
// Main.
package stage

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/provoke"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Main is the whole TestMain of a package: it lets the test binary stand in for the program that children run.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == provoke.ChildCommand {
		os.Exit(provoke.ChildMain())
	}
	os.Exit(m.Run())
}

// Stage is a subtree of cgroups in which scenarios run. It has the highest weight, so that the load of others on this machine
// does not decide what is provoked, and provoke.CPUs CPUs.
type Stage struct {
	Tree *cgrouptest.Tree
	t    testing.TB
	cpus cpuset.CPUSet
	runs int
}

// New makes the stage of one test.
func New(t testing.TB) *Stage {
	t.Helper()
	require.CPUs(t, provoke.CPUs)
	s := &Stage{t: t, Tree: cgrouptest.New(t)}
	h := s.Tree.Host
	s.Tree.Weigh(s.Tree.Top, cgroup.MaxShares)
	group, err := h.Group(s.Tree.Top)
	s.must(err)
	_, set, err := cgroup.CPUs(h, group.CPUSetPath)
	s.must(err)
	s.cpus = cpuset.New(set.List()[:provoke.CPUs]...)
	_, err = cgroup.WriteCPUs(h, group.CPUSetPath, s.cpus)
	s.must(err)
	return s
}

func (s *Stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Play runs a scenario while act looks at it, in cgroups of its own; its processes end with it.
func (s *Stage) Play(scenario provoke.Scenario, act func(target container.Container, others []container.Container)) {
	s.t.Helper()
	s.runs++
	root := "run" + string(rune('a'+s.runs%26)) + time.Now().Format("150405.000")
	h := s.Tree.Host
	paths := map[string]string{}
	for _, g := range scenario.Groups {
		path := s.Tree.Make(root + "/" + g.Path)
		paths[g.Path] = path
		if g.Limit > 0 {
			s.Tree.Limit(path, g.Limit)
		}
		if g.CPUs > 0 {
			group, err := h.Group(path)
			s.must(err)
			_, err = cgroup.WriteCPUs(h, group.CPUSetPath, cpuset.New(s.cpus.List()[:g.CPUs]...))
			s.must(err)
		}
	}
	var running []*provoke.Process
	defer func() {
		for _, g := range scenario.Groups {
			if g.Limit > 0 {
				s.Tree.Limit(paths[g.Path], 1000) // under a quota even an exit takes periods
			}
		}
		for _, p := range running {
			if err := p.Stop(); err != nil {
				s.t.Errorf("%s: %v", scenario.Name, err)
			}
		}
	}()
	for _, load := range scenario.Loads {
		p, err := provoke.Start("", provoke.Spec{Pools: load.Pools, Deadline: 2 * time.Minute})
		s.must(err)
		if why := p.Disturbed(); why != nil {
			s.t.Logf("%s: its Go runtime takes part: %v", scenario.Name, why)
		}
		running = append(running, p)
		for _, c := range cgroup.Controllers() {
			if _, ok := h.Version(c); ok {
				s.must(h.Attach(c, paths[load.Group], p.Pid()))
			}
		}
	}
	for _, p := range running {
		s.must(p.Go())
	}
	var target container.Container
	var others []container.Container
	for _, path := range paths {
		group, err := h.Group(path)
		s.must(err)
		c := container.Container{Group: group, Name: strings.TrimPrefix(path, s.Tree.Top+"/"+root+"/")}
		switch {
		case path == paths[scenario.Target]:
			target = c
		case strings.HasPrefix(path, paths[scenario.Target]+"/"):
		case !slices.ContainsFunc(scenario.Groups, func(g provoke.Group) bool { return strings.HasPrefix(paths[g.Path], path+"/") }):
			others = append(others, c)
		}
	}
	time.Sleep(300 * time.Millisecond) // the first wake-ups and the first quota are not like the rest
	act(target, others)
}

// Strangers is for how long the target's threads waited for others than ours, in seconds.
func Strangers(e diagnose.Explanation, ours []container.Container) float64 {
	sum := e.Waiting[diagnose.HostSystem].Seconds()
	for _, n := range e.Neighbours {
		known := false
		for _, c := range ours {
			known = known || n.Name == c.Name
		}
		if !known {
			sum += n.Waited.Seconds()
		}
	}
	return sum
}

// Stolen is what the hypervisor takes while act looks at the stage for a window, as a share of the stage's CPUs.
func (s *Stage) Stolen(act func() (window time.Duration)) float64 {
	s.t.Helper()
	before := s.steal()
	window := act()
	return (s.steal() - before) / window.Seconds() / provoke.CPUs
}

// steal is what the hypervisor took of all CPUs so far, in seconds.
func (s *Stage) steal() float64 {
	s.t.Helper()
	stat, err := procfs.ReadStat(os.DirFS("/proc"))
	s.must(err)
	return stat.Total.Steal.Seconds()
}
