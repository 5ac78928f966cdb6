package probe

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

func TestOrder(t *testing.T) {
	var o order
	var got []uint64
	each := func(e *event) error { got = append(got, e.At); return nil }
	for _, at := range []uint64{5, 3, 9, 4} {
		o.add(event{bpfRecord: bpfRecord{At: at}})
	}
	_ = o.take(5, each)
	o.add(event{bpfRecord: bpfRecord{At: 2}}) // too late: gets the time of the last one
	_ = o.take(math.MaxUint64, each)
	if want := []uint64{3, 4, 4, 5, 9}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestOrderKeepsTheRingsOrder among events of one time.
func TestOrderKeepsTheRingsOrder(t *testing.T) {
	var o order
	for i := range 1000 {
		o.add(event{bpfRecord: bpfRecord{At: uint64(rand.IntN(10)), A: uint64(i)}})
	}
	var last event
	_ = o.take(math.MaxUint64, func(e *event) error {
		if e.At < last.At || e.At == last.At && e.A < last.A {
			t.Errorf("%d %d after %d %d", e.At, e.A, last.At, last.A)
		}
		last = *e
		return nil
	})
}

// TestWordWraps checks that a word has 48 bits of time in 16 ns, 52 days.
func TestWordWraps(t *testing.T) {
	since := uint64(1)<<52 - 160
	word := (since>>4 + 100) << 16
	for _, at := range []uint64{since + 1600, since + 1584, since + 1<<51} {
		if got := elapsed(word|7, since, at); got != 1600 {
			t.Errorf("seen at %d: elapsed is %d ns, want 1600", at-since, got)
		}
	}
	h := []uint64{600, 1000}
	c := Counts{SinceNS: since, AtNS: since + 2000}
	for what, tc := range map[string]struct {
		c    Counts
		want bool
	}{
		"exact":                         {c, true},
		"changed at the moment of read": {Counts{SinceNS: since, AtNS: since + 1600}, true},
		"changed after it":              {Counts{SinceNS: since, AtNS: since + 1584}, false},
		"a change half told":            {Counts{SinceNS: since + 16, AtNS: c.AtNS}, false},
	} {
		if got := heldTo(&tc.c, word|1, h); got != tc.want {
			t.Errorf("%s: held is %v", what, got)
		}
	}
	// A container that is watched for more than a word has room for: its histogram has all of the time.
	long := Counts{SinceNS: since, AtNS: since + 3<<52 + 2000}
	old := []uint64{600, 1000 + 3<<52}
	if !heldTo(&long, word|1, old) {
		t.Error("it does not hold after 156 days")
	}
	if levels, n := upTo(&long, nil, word|1, old); n != 1 || !slices.Equal(levels, []int64{600, 1400 + 3<<52}) {
		t.Errorf("after 156 days: %v %d", levels, n)
	}
	if levels, n := upTo(&c, nil, word|1, h); n != 1 || !slices.Equal(levels, []int64{600, 1400}) {
		t.Errorf("got %v %d", levels, n)
	}
}

// TestCountersOfANewCgroup checks that the counters of a cgroup that was made anew under the same path, which begin at 0, count for
// nothing.
func TestCountersOfANewCgroup(t *testing.T) {
	was := cgroup.Stat{Bandwidth: true, Periods: 5, ThrottledPeriods: 5, Throttled: time.Second, Usage: new(10 * time.Second)}
	is := cgroup.Stat{Bandwidth: true, Periods: 100, ThrottledPeriods: 2, Throttled: time.Second, Usage: new(time.Second)}
	before := snapshot{stat: &was, others: map[uint32]cgroup.Stat{2: was}}
	after := snapshot{stat: &is, others: map[uint32]cgroup.Stat{2: is}}
	var f recording.Footer
	before.upTo(after, &f, []*slot{{}, {number: 1}})
	if f.UsageNS != nil || f.Periods != nil || f.ThrottledPeriods != nil || len(f.Neighbours) != 1 || f.Neighbours[0].Periods != nil {
		t.Errorf("%+v", f)
	}
	f = recording.Footer{}
	is = cgroup.Stat{Bandwidth: true, Periods: 8, ThrottledPeriods: 6, Throttled: 2 * time.Second, Usage: new(11 * time.Second)}
	after.others[2] = is
	before.upTo(after, &f, []*slot{{}, {number: 1}})
	if *f.UsageNS != 1e9 || *f.Periods != 3 || *f.ThrottledPeriods != 1 || *f.Neighbours[0].ThrottledPeriods != 1 {
		t.Errorf("of the same: %+v", f)
	}
}

// TestFinished checks that a CPU that counted at the first look is polled until it is seen outside or has finished
// since.
func TestFinished(t *testing.T) {
	for what, tc := range map[string]struct {
		first, now cpuState
		want       bool
	}{
		"outside":              {cpuState{finished: 1}, cpuState{finished: 1}, true},
		"inside":               {cpuState{inside: 1, finished: 1}, cpuState{inside: 1, finished: 1}, false},
		"nested":               {cpuState{inside: 1, finished: 1}, cpuState{inside: 2, finished: 1}, false},
		"outside now":          {cpuState{inside: 2, finished: 1}, cpuState{finished: 2}, true},
		"inside again":         {cpuState{inside: 1, finished: 1}, cpuState{inside: 1, finished: 2}, true},
		"inside only now":      {cpuState{finished: 1}, cpuState{inside: 1, finished: 1}, true},
		"the count went round": {cpuState{inside: 1, finished: 1<<32 - 1}, cpuState{inside: 1}, true},
	} {
		if got := allFinished([]cpuState{{}, tc.first}, []cpuState{{}, tc.now}); got != tc.want {
			t.Errorf("%s: finished is %v", what, got)
		}
	}
}

// TestTrackerHoldsAndReleases checks that a queue's hold and release reach the threads that wait on it, and no others.
func TestTrackerHoldsAndReleases(t *testing.T) {
	tr := newTracker(func(uint32) *Container { return nil })
	for i, r := range []bpfThreadRow{
		{Tid: 1, Cgroup: 7, State: 1, Cpu: 2}, {Tid: 2, Cgroup: 7, State: 0, Cpu: 2}, {Tid: 3, Cgroup: 7, State: 1, Cpu: 1},
		{Tid: 4, Cgroup: 8, State: 1, Cpu: 2}, {Tid: 5, Cgroup: 7, State: 1, Cpu: 2, Held: 1},
	} {
		r.At = uint64(i)
		tr.row(&r)
	}
	var got []recording.Event
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(tr.begin(100, func(e *recording.Event) error { got = append(got, *e); return nil }))
	must(tr.on(&event{bpfRecord: bpfRecord{At: 150, Kind: uint8(bpfRecordKindRECORD_HOLD), A: 7, B: 2}, more: 9}))
	must(tr.on(&event{bpfRecord: bpfRecord{At: 160, Kind: uint8(bpfRecordKindRECORD_RELEASE), A: 7, B: 2}}))
	want := []recording.Event{
		{AtNS: 0, Kind: recording.Hold, CPU: 2, Thread: 5},
		{AtNS: 50, Kind: recording.Hold, CPU: 2, Thread: 1, Cgroup: 9},
		{AtNS: 60, Kind: recording.Release, CPU: 2, Thread: 1},
		{AtNS: 60, Kind: recording.Release, CPU: 2, Thread: 5},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestTrackerSeesWhoRuns checks that the CPU's holder decides for a thread that the iterator finds between the two
// halves of a switch.
func TestTrackerSeesWhoRuns(t *testing.T) {
	tr := newTracker(func(uint32) *Container { return nil })
	for _, r := range []bpfThreadRow{
		{Tid: 1, State: 2, Cpu: 2, At: 10}, // has just given CPU 2 up
		{Tid: 2, State: 1, Cpu: 2, At: 10}, // to this one
		{Tid: 3, State: 2, Cpu: 3, At: 10},
		{Tid: 4, State: 2, Cpu: 4, At: 30}, // took the CPU after its holder was read
	} {
		tr.row(&r)
	}
	for cpu, holder := range map[uint16]uint64{
		2: uint64(bpfHolderKindHOLDER_THREAD)<<32 | 2, 3: uint64(bpfHolderKindHOLDER_THREAD)<<32 | 3,
		4: uint64(bpfHolderKindHOLDER_PROCESS)<<32 | 1,
	} {
		if err := tr.on(&event{bpfRecord: bpfRecord{At: 20, Kind: uint8(bpfRecordKindRECORD_HOLDER), Cpu: cpu, A: holder}}); err != nil {
			t.Fatal(err)
		}
	}
	want := []recording.State{recording.Runnable, recording.Running, recording.Running, recording.Running}
	for i, k := range tr.snapshot() {
		if k.State != want[i] {
			t.Errorf("thread %d: state %d, want %d", k.TID, k.State, want[i])
		}
	}
}

// FuzzDecode checks that no content of the ring causes a panic.
func FuzzDecode(f *testing.F) {
	r := bpfRecordPeriod{R: bpfRecord{Kind: uint8(bpfRecordKindRECORD_PERIOD)}}
	whole := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	f.Add(slices.Clone(whole))
	f.Add(slices.Clone(whole[:40]))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, ok := decode(slices.Clone(raw))
		if !ok {
			return
		}
		tr := newTracker(func(uint32) *Container { return nil })
		_ = tr.begin(0, func(*recording.Event) error { return nil })
		if err := tr.on(&e); err != nil {
			t.Error(err)
		}
	})
}
