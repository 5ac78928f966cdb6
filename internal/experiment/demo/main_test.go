package demo

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/topology"
)

// envVictim makes the test binary run a demo below the scope that it names, to
// be killed.
const envVictim = "UNTHROTTLE_DEMO_VICTIM"

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	cgrouptest.Child()
	if scope := os.Getenv(envVictim); scope != "" {
		os.Exit(victim(scope))
	}
	os.Exit(m.Run())
}

// victim says "variant" when its first child runs.
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

// testbed is a scope of the test's own on this host.
type testbed struct {
	*cgrouptest.Tree
	machine topology.Machine
}

func newTestbed(t *testing.T) testbed {
	t.Helper()
	tree := cgrouptest.New(t)
	tree.Weigh(tree.Top, cgroup.MaxShares)
	tree.Make("inner") // on v2: makes the top enable its controllers
	m, err := topology.Read(os.DirFS("/sys"))
	if err != nil {
		t.Fatal(err)
	}
	return testbed{tree, m}
}

func (b testbed) options() Options {
	// Few burners: what is cleaned up does not depend on their number, and the
	// lab's emulated CPUs are slow: beside a second guest the first sleep may take
	// longer than a person would wait.
	return Options{Host: b.Host, Machine: b.machine, Scope: b.Top, Seconds: MinSeconds, Burners: 3, patience: 2 * time.Minute}
}

// empty checks that no demo is left below the scope.
func (b testbed) empty(t *testing.T) {
	t.Helper()
	if left := b.demos(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// demos are the sandboxes below the scope, in all hierarchies.
func (b testbed) demos(t *testing.T) (all []string) {
	t.Helper()
	for _, c := range cgroup.Controllers() {
		if _, ok := b.Host.Version(c); !ok {
			continue
		}
		children, err := b.Host.Children(c, b.Top)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range children {
			if strings.HasPrefix(cgroup.Base(path), Prefix) {
				all = append(all, path)
			}
		}
	}
	return all
}
