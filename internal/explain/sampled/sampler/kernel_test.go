package sampler

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/sampled"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
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

// What look takes from schedstat is so on this kernel: a thread that a quota stops counts the stop as waiting, and only once it runs
// again. A thread that wakes up meanwhile may still run on a CPU that has a slice of the quota left, up to 6.1 for most of a stop.
func TestStopsInSchedstat(t *testing.T) {
	tr := cgrouptest.New(t)
	own := tr.Make("own")
	const quota, enough = 0.05, 20 // of a period, and stops
	tr.Limit(own, quota)
	followed := newThreads("/proc", []int{tr.Work(own, 1)})
	defer followed.close()
	time.Sleep(300 * time.Millisecond) // until its threads are there
	followed.list(true)
	first, _ := followed.read(nil, true)
	waits, grew, readings := map[uint32]time.Duration{}, map[uint32]int{}, 0
	stops, before := uint64(0), stopsOf(t, tr, own)
	for until := time.Now().Add(time.Minute); stops < enough && time.Now().Before(until); readings++ {
		time.Sleep(5 * time.Millisecond)
		now, _ := followed.read(nil, false)
		for _, at := range now {
			at.Waited -= first[slices.IndexFunc(first, func(f sampled.Thread) bool { return f.TID == at.TID })].Waited
			if at.Waited > waits[at.TID] {
				waits[at.TID] = at.Waited
				grew[at.TID]++
			}
		}
		stops = stopsOf(t, tr, own) - before
	}
	if stops < enough {
		t.Fatalf("stopped %d times in a minute", stops)
	}
	most, stopped := 0.0, (1-quota)*0.1*float64(stops) // seconds at most, where the quota is used up at once
	for _, at := range first {
		share := waits[at.TID].Seconds() / stopped
		if share < 0.05 { // a thread of the runtime that slept
			continue
		}
		t.Logf("%.2f of %.1f s of stops are in a thread's waiting, which grew in %d of %d readings", share, stopped, grew[at.TID], readings)
		most = max(most, share)
		if share > 0.5 && grew[at.TID] > readings/2 { // a stop is most of a period, so that nearly all readings are in one
			t.Errorf("its waiting grew during the stops")
		}
	}
	if most < 0.5 {
		t.Error("no thread counted the stops as waiting")
	}
}

func stopsOf(t *testing.T, tr *cgrouptest.Tree, path string) uint64 {
	t.Helper()
	c, err := cgroup.ReadStat(tr.Host, cgroup.Group{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return c.ThrottledPeriods
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
