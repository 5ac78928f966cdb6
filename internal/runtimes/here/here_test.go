package here

import (
	"math"
	"os"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/runtimes"
)

func TestMain(m *testing.M) {
	cgrouptest.Child()
	os.Exit(m.Run())
}

func TestRequest(t *testing.T) {
	for _, c := range []struct {
		v      cgroup.Version
		weight uint64
		want   float64
	}{{cgroup.V1, 512, 0.5}, {cgroup.V1, 3072, 3}, {cgroup.V2, 20, 0.5}, {cgroup.V2, 79, 2}, {cgroup.V2, 0, 0}} {
		if got := requestOf(c.v, c.weight); math.Abs(got-c.want) > 0.02*c.want+0.01 {
			t.Errorf("%v, weight %d: %v, want %v", c.v, c.weight, got, c.want)
		}
	}
}

// The processes of a cgroup and of one below it are read.
func TestProcesses(t *testing.T) {
	tr := cgrouptest.New(t)
	below := tr.Make("a/b")
	tr.Limit(below, 0.5)
	tr.Rest(below)
	all, notes, err := Processes(tr.Host, cgroup.Parent(below))
	if err != nil || len(notes) > 0 || len(all) != 1 {
		t.Fatalf("%d processes, %q, %v", len(all), notes, err)
	}
	p := all[0]
	if p.Host < 1 || p.Go == "" || p.Env == nil {
		t.Errorf("%+v", p)
	}
	d := runtimes.Decide(threadpool.Known(), p, 0.5)
	if len(d) != 1 || d[0].Fits["processors"] != 1 {
		t.Errorf("%+v", d)
	}
}

func TestLimits(t *testing.T) {
	if l, err := Limits(); l.Host < 1 || err == nil && l.CPUs < 0 {
		t.Errorf("%+v, %v", l, err)
	}
}
