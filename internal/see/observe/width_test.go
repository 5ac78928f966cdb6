package observe

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

// fakeProbe returns the counts that the test sets.
type fakeProbe struct {
	counts map[uint64]probe.Counts
	refuse error
	gone   []uint64
}

func (f *fakeProbe) Watch(c probe.Container) error {
	if f.refuse != nil {
		return f.refuse
	}
	f.counts[c.ID] = probe.Counts{SinceNS: 100, AtNS: 100, WidthNS: make([]int64, 8), WantedNS: make([]int64, 8),
		StoppedNS: new(int64), StoppedIntervals: new(uint64)}
	return nil
}

func (f *fakeProbe) Unwatch(id uint64) error {
	f.gone = append(f.gone, id)
	delete(f.counts, id)
	return nil
}

func (f *fakeProbe) ReadInto(id uint64, into *probe.Counts) error {
	c, ok := f.counts[id]
	if !ok {
		return errors.New("not watched")
	}
	*into = c
	return nil
}

func TestProbeMakesStoppedTimeExact(t *testing.T) {
	was := probe.Counts{SinceNS: 5, AtNS: 1e9, WidthNS: []int64{7e8, 3e8, 0, 0}, WantedNS: []int64{1, 1},
		StoppedNS: new(int64(5e8)), StoppedIntervals: new(uint64(3))}
	is := probe.Counts{SinceNS: 5, AtNS: 2e9, WidthNS: []int64{9e8, 3e8, 8e8, 0}, WantedNS: []int64{1, 1, 0, 1e9},
		StoppedNS: new(int64(7e8)), StoppedIntervals: new(uint64(8))}
	o := Observation{Window: time.Second, StoppedLow: new(time.Duration(0)), StoppedHigh: new(time.Second)}
	o.exact(&was, &is)
	if !o.StoppedExact || *o.StoppedLow != 200*time.Millisecond || *o.StoppedHigh != 200*time.Millisecond || *o.StoppedIntervals != 5 {
		t.Errorf("%+v", o)
	}
	if len(o.Width) != 3 || o.Width[0] != 200*time.Millisecond || o.Width[1] != 0 ||
		o.Width[2] != 800*time.Millisecond || Most(o.Width) != 2 {
		t.Errorf("width %v", o.Width)
	}
	if mean, ok := Mean(o.Width); !ok || mean != 1.6 {
		t.Errorf("mean %v %v", mean, ok)
	}
	if Most(o.Wanted) != 3 {
		t.Errorf("wanted %v", o.Wanted)
	}
	if _, ok := Mean(nil); ok {
		t.Error("the mean of nothing")
	}
}

// TestStoppedTimeIsAsExactAsItsChangesWereInTime: what a hypervisor made late keeps its bounds apart.
func TestStoppedTimeIsAsExactAsItsChangesWereInTime(t *testing.T) {
	const ms = time.Millisecond
	was := probe.Counts{SinceNS: 5, AtNS: 1e9, StoppedNS: new(int64(5e8)), LateNS: 9e8, StoppedLateNS: 4e8}
	for _, tc := range []struct {
		what          string
		stopped, late time.Duration
		low, high     time.Duration
		exact         bool
	}{
		{"nothing late", 200 * ms, 0, 200 * ms, 200 * ms, true},
		{"late by a thousandth", 200 * ms, ms, 200 * ms, 200 * ms, true},
		{"later than that", 200 * ms, ms + 1, 199*ms - 1, 201*ms + 1, false},
		{"late by more than was stopped", 20 * ms, 50 * ms, 0, 70 * ms, false},
		{"late by more than was free", 980 * ms, 50 * ms, 930 * ms, 1000 * ms, false},
	} {
		is := probe.Counts{SinceNS: 5, AtNS: 2e9, StoppedNS: new(*was.StoppedNS + int64(tc.stopped)),
			StoppedLateNS: was.StoppedLateNS + uint64(tc.late), LateNS: 3e9}
		o := Observation{Window: time.Second, StoppedHigh: new(time.Second)}
		o.exact(&was, &is)
		if *o.StoppedLow != tc.low || *o.StoppedHigh != tc.high || o.StoppedExact != tc.exact {
			t.Errorf("%s: %v to %v, exact: %v; want %v to %v, %v", tc.what, *o.StoppedLow, *o.StoppedHigh,
				o.StoppedExact, tc.low, tc.high, tc.exact)
		}
	}
}

func TestWhatTheProbeCannotSayStaysAsItWas(t *testing.T) {
	bound := time.Second
	plain := func() Observation { return Observation{Window: time.Second, StoppedHigh: &bound} }
	counts := func(since, at uint64) *probe.Counts {
		return &probe.Counts{SinceNS: since, AtNS: at, WidthNS: []int64{int64(at)}, StoppedNS: new(int64)}
	}
	for what, pair := range map[string][2]*probe.Counts{
		"no probe": {}, "watched only now": {nil, counts(1, 2)}, "watched anew": {counts(1, 2), counts(3, 4)},
		"no time": {counts(1, 2), counts(1, 2)},
	} {
		o := plain()
		o.exact(pair[0], pair[1])
		if o.StoppedExact || o.Width != nil || *o.StoppedHigh != bound {
			t.Errorf("%s: %+v", what, o)
		}
	}
	inexact := counts(1, 9)
	inexact.Inexact = true
	unsure := plain()
	unsure.exact(counts(1, 2), inexact)
	if unsure.StoppedExact || *unsure.StoppedHigh != bound || unsure.StoppedLow != nil {
		t.Errorf("counts that are not exact themselves: %+v", unsure)
	}
	noStop := counts(1, 9)
	noStop.StoppedNS = nil
	o := plain()
	o.exact(counts(1, 2), noStop)
	if o.StoppedExact || o.Width == nil || o.Wanted != nil {
		t.Errorf("a kernel that shows no stopped time: %+v", o)
	}
}

func TestSamplerWatchesWhatItSamples(t *testing.T) {
	f := &fakeProbe{counts: map[uint64]probe.Counts{}}
	k := newFake(t, cgroup.V2, "/")
	k.v2("/a", "max 100000", 0, 0, 0, 0, 0)
	k.v2("/b", "max 100000", 0, 0, 0, 0, 0)
	s := k.sampler(Options{Probe: f})
	both := named("/a", "/b")
	first, err := s.Sample(context.Background(), both, nil)
	if err != nil || len(f.counts) != 2 || first[0].counts == nil {
		t.Fatalf("%v, watched %v", err, f.counts)
	}
	if _, err := s.Sample(context.Background(), both[:1], nil); err != nil || len(f.counts) != 1 || len(f.gone) != 1 {
		t.Errorf("one is no longer asked for: %v, unwatched %v", err, f.gone)
	}
	f.refuse = errors.New("all 1024 places are taken")
	second, err := s.Sample(context.Background(), both, nil)
	if err != nil || second[1].counts != nil || len(second[1].NotMeasured) == 0 {
		t.Errorf("refused: %v, %v", err, second[1].NotMeasured)
	}
}

// orderProbe counts how many containers are watched when the first is read.
type orderProbe struct {
	fakeProbe
	atFirstRead int
}

func (f *orderProbe) ReadInto(id uint64, into *probe.Counts) error {
	if f.atFirstRead == 0 {
		f.atFirstRead = len(f.counts)
	}
	return f.fakeProbe.ReadInto(id, into)
}

func TestAllAreWatchedBeforeTheFirstIsRead(t *testing.T) {
	onBothVersions(t, func(t *testing.T, v cgroup.Version, f *fake) {
		f.podTree(v, 1)
		p := &orderProbe{fakeProbe: fakeProbe{counts: map[uint64]probe.Counts{}}}
		w := f.watch(WatchOptions{Sampler: Options{Probe: p}})
		w.run(2 * time.Second)
		if p.atFirstRead != 2 {
			t.Errorf("%d of 2 containers are watched when the first is read: each read costs a pass over all threads", p.atFirstRead)
		}
		if last := w.snapshots[len(w.snapshots)-1]; last.Hot != 0 {
			t.Errorf("%d are hot, of which one was stopped before we looked", last.Hot)
		}
	})
}
