package here

import (
	"os"
	"strings"
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

// A weight of v2 stands for either of two requests, and is told as neither.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		v      cgroup.Version
		weight uint64
		want   float64
		unsure string
	}{
		{cgroup.V1, 512, 0.5, ""}, {cgroup.V1, 3072, 3, ""}, {cgroup.V1, 2, 0, ""}, {cgroup.V2, 1, 0, ""},
		{cgroup.V2, 59, 0, "weight of 59 stands for a request of 1.49 CPUs, or of 0.51 CPUs since runc 1.3.2"},
		{cgroup.V2, 174, 0, "weight of 174 stands for a request of 4.43 CPUs, or of 2.01 CPUs since runc 1.3.2"},
	} {
		got, unsure := requestOf(c.v, c.weight)
		if got != c.want || !strings.Contains(unsure, c.unsure) || (c.unsure == "") != (unsure == "") {
			t.Errorf("%v, weight %d: %v, %q; want %v", c.v, c.weight, got, unsure, c.want)
		}
	}
}

// The processes of a cgroup and of one below it are read.
func TestProcesses(t *testing.T) {
	tr := cgrouptest.New(t)
	below := tr.Make("a/b")
	tr.Limit(below, 0.5)
	tr.Rest(below)
	processes, notes, err := Processes(tr.Host, cgroup.Parent(below))
	if err != nil || len(notes) > 0 || len(processes) != 1 {
		t.Fatalf("%d processes, %q, %v", len(processes), notes, err)
	}
	p := processes[0]
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
