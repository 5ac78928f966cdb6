package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

// idleProbe counts containers that are all idle, or all busy.
type idleProbe struct {
	fakeProbe
	idle time.Duration
}

func (f *idleProbe) ReadInto(id uint64, into *probe.Counts) error {
	err := f.fakeProbe.ReadInto(id, into)
	into.IdleNS = uint64(f.idle)
	return err
}

// reads returns how many files w reads in a time, and the last observation of the first container.
func (w *watched) reads(d time.Duration) (uint64, Observation) {
	before := w.sampler.Reads()
	w.run(d)
	return w.sampler.Reads() - before, w.snapshots[len(w.snapshots)-1].Observations[0]
}

func TestLimitsAreReadWhereTheyAreWritten(t *testing.T) {
	onBothVersions(t, func(t *testing.T, v cgroup.Version, f *fake) {
		f.podTree(v, 1)
		w := f.watch(WatchOptions{})
		w.run(15 * time.Second)
		w.notifier.whole = false
		all, _ := w.reads(10 * time.Second)
		w.notifier.whole = true
		few, o := w.reads(10 * time.Second)
		// a, b and their pod, each once in ten rounds.
		limits := uint64(3 * len(cgroup.LimitFiles(v)))
		if all-few != 9*limits {
			t.Errorf("%d reads in ten rounds, all are %d: want %d fewer", few, all, 9*limits)
		}
		was := *o.LimitCPUs
		file, text := "cpu.cfs_quota_us", fmt.Sprint(25000)
		if v == cgroup.V2 {
			file, text = "cpu.max", "25000 100000"
		}
		f.set(cgroup.CPU, "/pod/a", file, text)
		if _, o := w.reads(time.Second); *o.LimitCPUs != 0.25 {
			t.Errorf("limit %v of before %v; a quarter was written", *o.LimitCPUs, was)
		}
	})
}

func TestAnIdleContainerIsReadInItsTurnOnly(t *testing.T) {
	onBothVersions(t, func(t *testing.T, v cgroup.Version, f *fake) {
		f.podTree(v, 1)
		p := &idleProbe{fakeProbe: fakeProbe{counts: map[uint64]probe.Counts{}}}
		w := f.watch(WatchOptions{Sampler: Options{Probe: p}})
		w.run(15 * time.Second)
		busy, _ := w.reads(10 * time.Second)
		p.idle = time.Hour
		idle, o := w.reads(10 * time.Second)
		if idle > busy/2 {
			t.Errorf("%d reads in ten rounds while idle, %d while busy", idle, busy)
		}
		if o.UsedCPUs == nil || *o.UsedCPUs != 0 || o.Periods == nil || *o.Periods != 0 || o.CPUsAllowed.IsEmpty() || *o.LimitCPUs != 1 {
			t.Errorf("idle: %+v", o)
		}
		p.idle = 0
		f.podTree(v, 2)
		if _, o := w.reads(time.Second); *o.UsedCPUs == 0 {
			t.Error("its use does not show in the round in which it is no longer idle")
		}
		// What the probe did not see shows in its turn.
		p.idle = time.Hour
		w.run(5 * time.Second)
		f.podTree(v, 3)
		w.notifier.look() // as if nothing had been written
		used := 0.0
		for range turnRounds {
			_, o := w.reads(time.Second)
			used += *o.UsedCPUs
		}
		if used == 0 {
			t.Error("its use never shows")
		}
	})
}

func TestAContainerWithOthersBelowItNeverRests(t *testing.T) {
	f := newFake(t, cgroup.V2, "/")
	f.v2("/a", "max 100000", 0, 0, 0, 0, 0)
	f.v2("/a/b", "max 100000", 0, 0, 0, 0, 0)
	s := f.sampler(Options{})
	both := named("/a", "/a/b")
	var samples []Sample
	for range 3 {
		f.now = f.now.Add(time.Hour)
		samples, _ = s.Sample(t.Context(), both, samples)
	}
	s.begin()
	s.unwritten = true
	counts := &probe.Counts{IdleNS: uint64(2 * time.Hour)}
	now := f.now.Add(time.Second)
	for path, want := range map[string]bool{"/a": false, "/a/b": true} {
		s.levels[path].number = s.round + 1 // not its turn
		if got := s.rests(s.levels[path], counts, now); got != want {
			t.Errorf("%s rests: %v", path, got)
		}
	}
}
