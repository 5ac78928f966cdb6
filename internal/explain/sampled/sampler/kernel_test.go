package sampler

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
)

func TestMain(m *testing.M) {
	cgrouptest.Child()
	os.Exit(m.Run())
}

// A real quota: whose it is, and that the process's threads were stopped for it, by counters and by their own waiting.
func TestRealQuota(t *testing.T) {
	tr := cgrouptest.New(t)
	pod := tr.Make("pod")
	own, without := tr.Make("own"), tr.Make("pod/app")
	tr.Limit(own, 0.2)
	tr.Limit(pod, 0.2)
	for path, by := range map[string]string{own: own, without: pod} {
		pid := tr.Work(path, 2)
		f, err := Look(context.Background(), Options{PID: pid, For: 4 * time.Second, Least: 2 * time.Second, Share: 10})
		if err != nil {
			t.Fatal(err)
		}
		at := diagnose.Binding(f.Figures.Levels)
		if at < 0 || f.Figures.Levels[at].Path != by {
			t.Errorf("%s: the level that stops it is %d of %+v", path, at, f.Figures.Levels)
			continue
		}
		c := f.Figures.Levels[at].Counters
		if c == nil || c.ThrottledPeriods == 0 || c.ThrottledPeriods > c.Periods || f.Figures.Stopped == nil || *f.Figures.Stopped <= 0 ||
			*f.Figures.Stopped > f.Figures.Window || f.Figures.Stops > int(c.ThrottledPeriods)+1 {
			t.Errorf("%s: %+v, stopped %v of %v", path, c, f.Figures.Stopped, f.Figures.Window)
		}
		e := f.Figures.Explain()
		if !slices.Contains([]diagnose.Cause{diagnose.Shortage, diagnose.Burst, diagnose.Ancestor, diagnose.Neighbours}, e.Cause) ||
			len(e.Pools) == 0 || e.LimitCPUs == nil || *e.LimitCPUs != 0.2 {
			t.Errorf("%s: %q: %s", path, e.Cause, e.Verdict)
		}
	}
}

// A process that ends, and one that is not there.
func TestEnds(t *testing.T) {
	if _, err := Look(context.Background(), Options{PID: 1 << 30, For: time.Second}); err == nil {
		t.Error("looked at a process that is not there")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f, err := Look(ctx, Options{PID: os.Getpid(), For: time.Minute, Least: time.Minute, Share: 0.01})
	if err != nil || f.Figures.Window > 0 {
		t.Errorf("interrupted before it began: %v of %v", err, f.Figures.Window)
	}
}
