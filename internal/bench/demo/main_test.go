package demo

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/topology"
)

// envVictim makes the test binary run a demo below the scope that it names, to
// be killed.
const envVictim = "UNTHROTTLE_DEMO_VICTIM"

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workload.ChildCommand {
		os.Exit(workload.ChildMain(os.Args[2:]))
	}
	if scope := os.Getenv(envVictim); scope != "" {
		os.Exit(victim(scope))
	}
	os.Exit(m.Run())
}

// victim says "arm" when its first child runs.
func victim(scope string) int {
	h, m, err := host()
	if err == nil {
		_, err = Run(context.Background(), Options{Host: h, Machine: m, Scope: scope, Seconds: 60, Burners: 3, Progress: func(e Event) {
			fmt.Println(e.Doing)
		}})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func host() (*cgroup.Host, topology.Machine, error) {
	h, err := cgroup.Open("/proc")
	if err != nil {
		return nil, topology.Machine{}, err
	}
	m, err := topology.Read(os.DirFS("/sys"))
	return h, m, err
}

// ground is a cgroup of the test's own, on this host, as the demo's scope.
type ground struct {
	host    *cgroup.Host
	machine topology.Machine
	scope   string
	site    site
}

func newGround(t *testing.T) ground {
	t.Helper()
	require.Root(t)
	h, m, err := host()
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := h.Version(cgroup.CPU); ok && v == cgroup.V2 {
		require.CgroupV2(t)
	} else {
		require.CgroupV1(t)
	}
	top, err := findSite(h, h.Top(cgroup.CPU))
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("unthrottle-test-demo-%d-%s", os.Getpid(), strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")))
	g := ground{host: h, machine: m, scope: cgroup.Join(h.Top(cgroup.CPU), name)}
	g.site = site{scope: top.child(name), hierarchies: top.hierarchies}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range top.hierarchies {
		must(h.Make(c, in(g.site.scope, c)))
		t.Cleanup(func() {
			if err := h.Remove(c, in(g.site.scope, c)); err != nil {
				t.Errorf("something was left behind: %v", err)
			}
		})
	}
	weight, _ := h.Version(cgroup.CPU)
	shares := cgroup.SharesWrite(weight, cgroup.MaxShares)
	must(h.Write(cgroup.CPU, g.site.scope.Path, shares.File, shares.Value))
	if v, _ := h.Version(cgroup.CPUSet); v == cgroup.V2 {
		must(h.Write(cgroup.CPUSet, g.site.scope.CPUSetPath, cgroup.FileSubtreeControl, "+cpu +cpuset"))
		return g
	}
	for file, read := range map[string]func(cgroup.FS, string) (a, b cpuset.CPUSet, err error){
		cgroup.FileMems: cgroup.Mems, cgroup.FileCPUs: cgroup.CPUs,
	} {
		_, all, err := read(h, top.scope.CPUSetPath)
		must(err)
		must(h.Write(cgroup.CPUSet, g.site.scope.CPUSetPath, file, all.String()))
	}
	return g
}

func (g ground) options() Options {
	// Few burners: what is cleaned up does not depend on their number, and the
	// lab's emulated CPUs are slow.
	return Options{Host: g.host, Machine: g.machine, Scope: g.scope, Seconds: MinSeconds, Burners: 3}
}

// empty checks that nothing is left below the scope.
func (g ground) empty(t *testing.T) {
	t.Helper()
	if left := g.children(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func (g ground) children(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, c := range g.site.hierarchies {
		below, err := g.host.Children(c, in(g.site.scope, c))
		if err != nil {
			t.Fatal(err)
		}
		all = slices.Concat(all, below)
	}
	return all
}
