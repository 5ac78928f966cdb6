package diagnose_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// drawSchedule is any load on any small host.
func drawSchedule(t *rapid.T) recording.Recording {
	s := rt.New(rapid.IntRange(1, 6).Draw(t, "cpus"))
	if rapid.Bool().Draw(t, "limited") {
		s.Limit(time.Duration(rapid.IntRange(5, 300).Draw(t, "quota"))*ms, 100*ms)
	}
	if rapid.Bool().Draw(t, "parent") {
		s.ParentLimit(time.Duration(rapid.IntRange(5, 300).Draw(t, "parent quota"))*ms, 100*ms)
	}
	for p := range rapid.IntRange(1, 3).Draw(t, "pools") {
		tids := s.Threads(fmt.Sprintf("pool%c", 'a'+p), rapid.IntRange(1, 5).Draw(t, "threads"))
		every := time.Duration(rapid.IntRange(5, 200).Draw(t, "every")) * ms
		work := time.Duration(rapid.IntRange(1, 60).Draw(t, "work")) * ms
		s.Repeat(int(400*ms/every), every, func(at time.Duration) { s.Work(at, work, tids...) })
	}
	n := s.Neighbour("n", "/n", nil, nil)
	for range rapid.IntRange(0, 3).Draw(t, "occupied") {
		from := time.Duration(rapid.IntRange(0, 400).Draw(t, "from")) * ms
		s.Occupy(from, from+20*ms, 0, n)
	}
	return s.Run(time.Duration(rapid.IntRange(1, 500).Draw(t, "length")) * ms)
}

func sum(bars []diagnose.Bar) (all, integral time.Duration) {
	for _, b := range bars {
		all += b.Time
		integral += time.Duration(b.CPUs) * b.Time
	}
	return all, integral
}

func waited(w map[diagnose.Reason]time.Duration) time.Duration {
	all := time.Duration(0)
	for _, d := range w {
		all += d
	}
	return all
}

// These sums hold for any recording whose events fit together.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawSchedule(t)
		e := explain(r)
		window := time.Duration(r.Footer.EndNS)
		width, running := sum(e.Width)
		wanted, demand := sum(e.Wanted)
		if width != window || wanted != window {
			t.Fatalf("histograms of %v and %v in a window of %v", width, wanted, window)
		}
		if waiting := waited(e.Waiting); waiting != demand-running {
			t.Fatalf("waited %v by reason, and %v by wanted less width", waiting, demand-running)
		}
		cpu, byPool := time.Duration(0), time.Duration(0)
		for _, p := range e.Pools {
			cpu += p.CPU
			byPool += waited(p.Waiting)
			if p.CPUThrottled != nil && (*p.CPUThrottled < 0 || *p.CPUThrottled > p.CPU) {
				t.Fatalf("%s: %v of %v in throttled periods", p.Name, *p.CPUThrottled, p.CPU)
			}
			if q := p.Delay; q != nil && !(0 <= q.P50 && q.P50 <= q.P90 && q.P90 <= q.P99 && q.P99 <= q.Max) {
				t.Fatalf("%s: delay %+v", p.Name, *q)
			}
		}
		if cpu != running || byPool != waited(e.Waiting) {
			t.Fatalf("pools have %v of %v CPU time, waited %v of %v", cpu, running, byPool, waited(e.Waiting))
		}
		usage := time.Duration(*r.Footer.UsageNS)
		if running != usage {
			t.Fatalf("%v CPU time of %v", running, usage)
		}
		if *e.Stopped < 0 || *e.Stopped > window {
			t.Fatalf("stopped for %v of %v", *e.Stopped, window)
		}
		for _, c := range e.Checks {
			if !c.OK {
				t.Fatalf("check %s: %v", c.Name, *c.ErrorRatio)
			}
		}
		if want := r.Footer.WantedNS; len(e.Wanted) > 0 {
			for _, b := range e.Wanted {
				if b.CPUs >= len(want) || want[b.CPUs] != b.Time.Nanoseconds() {
					t.Fatalf("wanted %d for %v", b.CPUs, b.Time)
				}
			}
		}
	})
}

func wall(c diagnose.RankedCause) time.Duration {
	if c.Wall == nil {
		return 0
	}
	return *c.Wall
}

// Every cause has evidence, and accounts for no more than there is.
func TestNoCauseWithoutEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawSchedule(t)
		e, window := explain(r), time.Duration(r.Footer.EndNS)
		if len(e.Causes) == 0 || e.Cause != e.Causes[0].Cause || e.Verdict == "" {
			t.Fatalf("%+v", e.Causes)
		}
		for i, c := range e.Causes {
			if c.Evidence == "" {
				t.Fatalf("%s has no evidence", c.Cause)
			}
			if c.Wall != nil && *c.Wall > window {
				t.Fatalf("%s cost %v of %v", c.Cause, *c.Wall, window)
			}
			// The first decides; the others follow by wall time.
			if i > 1 && wall(c) > wall(e.Causes[i-1]) {
				t.Fatalf("%s cost more than %s before it: %+v", c.Cause, e.Causes[i-1].Cause, e.Causes)
			}
			switch c.Cause {
			case diagnose.None:
				if i > 0 || len(e.Causes) > 1 {
					t.Fatalf("none beside others: %+v", e.Causes)
				}
			case diagnose.Neighbours, diagnose.Cpuset:
				if c.Stopped != nil || c.Waited == nil || *c.Waited > waited(e.Waiting) {
					t.Fatalf("%s accounts for %v of %v", c.Cause, c.Waited, waited(e.Waiting))
				}
			default:
				if *e.Stopped == 0 || c.Stopped == nil || *c.Stopped > *e.Stopped {
					t.Fatalf("%s accounts for %v of %v", c.Cause, c.Stopped, *e.Stopped)
				}
			}
		}
	})
}

// Numbers of threads carry no meaning.
func TestThreadNumbersDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawSchedule(t)
		want := explain(r)
		by := rapid.Uint32Range(1, 1<<30).Draw(t, "by")
		to := func(tid uint32) uint32 {
			if tid == 0 {
				return 0
			}
			return (1<<31 - tid) ^ by
		}
		for i := range r.Header.Threads {
			h := &r.Header.Threads[i]
			h.TID, h.TGID = to(h.TID), to(h.TGID)
		}
		for i := range r.Events {
			e := &r.Events[i]
			e.Thread, e.NextThread, e.Waker, e.TGID = to(e.Thread), to(e.NextThread), to(e.Waker), to(e.TGID)
		}
		if diff := cmp.Diff(want, explain(r)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A larger quota stops no longer, on a host without anything else.
func TestMoreQuotaStopsLess(t *testing.T) {
	last := time.Duration(math.MaxInt64)
	for _, quota := range []time.Duration{10, 20, 40, 80, 160, 320} {
		s := rt.New(8).Limit(quota*ms, 100*ms)
		w := s.Threads("w", 8)
		s.Repeat(5, 200*ms, func(at time.Duration) { s.Work(at, 20*ms, w...) })
		e := explain(s.Run(time.Second))
		if *e.Stopped > last {
			t.Errorf("quota %v: stopped for %v, with less quota %v", quota*ms, *e.Stopped, last)
		}
		last = *e.Stopped
	}
	if last != 0 {
		t.Errorf("stopped for %v with more quota than work", last)
	}
}

// anyEvents returns events that do not fit together.
func anyEvents(seed uint64, n int) (recording.Header, []recording.Event) {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := recording.Header{
		Host: recording.Host{CPUs: cpuset.New(0, 1, 2)}, Target: recording.Target{Name: "x", ID: 5},
		Levels: []recording.Level{{ID: 5, QuotaNS: new(int64(rng.IntN(3)) * 10_000_000),
			PeriodNS: int64(rng.IntN(3)) * 50_000_000}, {ID: 4, Path: "/p"}},
	}
	for i := range uint32(rng.IntN(4)) {
		h.Threads = append(h.Threads, recording.Thread{TID: i, TGID: 1, State: recording.State(rng.IntN(4)),
			CPU: int32(rng.IntN(5) - 1), Allowed: []string{"", "0", "9", "x"}[rng.IntN(4)]})
	}
	events := make([]recording.Event, n)
	at := int64(0)
	for i := range events {
		at += rng.Int64N(5_000_000) - 500_000
		events[i] = recording.Event{
			AtNS: at, Kind: recording.Kind(rng.IntN(14)), Flags: recording.Flags(rng.IntN(16)), CPU: int32(rng.IntN(6) - 1),
			Thread: uint32(rng.IntN(6)), NextThread: uint32(rng.IntN(6)), Owner: uint32(rng.IntN(6)), NextOwner: uint32(rng.IntN(6)),
			TGID: uint32(rng.IntN(3)), Cgroup: uint64(rng.IntN(7)), OwnerKind: recording.OwnerKind(rng.IntN(7)),
			Text:  fmt.Sprint("n", rng.IntN(9)),
			Count: uint64(rng.IntN(2)), Period: recording.PeriodState{StoppedCPUs: uint32(rng.IntN(2)), QuotaNS: rng.Int64N(100_000_000)},
		}
		if rng.IntN(200) == 0 {
			events[i].AtNS, events[i].CPU = rng.Int64(), rng.Int32()
		}
	}
	return h, events
}

// sound fails if figures are impossible.
func sound(t testing.TB, e diagnose.Explanation) {
	t.Helper()
	width, running := sum(e.Width)
	wanted, demand := sum(e.Wanted)
	if width != e.Window || wanted != e.Window {
		t.Fatalf("histograms of %v and %v in a window of %v", width, wanted, e.Window)
	}
	for _, bars := range [][]diagnose.Bar{e.Width, e.Wanted, e.SampledWidth} {
		for _, b := range bars {
			if b.CPUs < 0 || b.Time <= 0 {
				t.Fatalf("bar %+v", b)
			}
		}
	}
	all := time.Duration(0)
	for _, p := range e.Pools {
		for r, d := range p.Waiting {
			if d < 0 {
				t.Fatalf("%s waited %v for %s", p.Name, d, r)
			}
			all += d
		}
		if p.CPU < 0 || p.Threads < 0 || p.Widest < 0 {
			t.Fatalf("%+v", p)
		}
	}
	if running < 0 || demand < 0 || all != waited(e.Waiting) {
		t.Fatalf("ran %v, wanted %v, waited %v and %v", running, demand, all, waited(e.Waiting))
	}
	if e.Stopped != nil && (*e.Stopped < 0 || *e.Stopped > e.Window) {
		t.Fatalf("stopped %v of %v", *e.Stopped, e.Window)
	}
	if e.Verdict == "" || (len(e.Causes) == 0) != (len(e.LimitChanges) > 0) {
		t.Fatal("no verdict")
	}
	for _, row := range e.Timeline {
		if row.Start < 0 || row.Length < 0 || row.Start+row.Length > e.Window {
			t.Fatalf("row %v +%v in %v", row.Start, row.Length, e.Window)
		}
		for _, c := range row.Cells {
			if c.MeanWidth < 0 || c.Stopped < 0 || c.Stopped > 1 || c.Wanted < 0 || math.IsNaN(c.MeanWidth) {
				t.Fatalf("cell %+v", c)
			}
		}
	}
}

func TestEventsThatContradictEachOther(t *testing.T) {
	for seed := range uint64(300) {
		h, events := anyEvents(seed, 400)
		a := diagnose.New(h, diagnose.Options{})
		for i := range events {
			a.Add(&events[i])
		}
		e := a.Finish(recording.Footer{EndNS: events[len(events)-1].AtNS, LostEvents: seed % 2})
		sound(t, e)
		// A waiting thread wants a CPU and has none, whatever the events said.
		_, running := sum(e.Width)
		_, demand := sum(e.Wanted)
		if w := waited(e.Waiting); w < demand-running {
			t.Fatalf("seed %d: waited %v, less than %v", seed, w, demand-running)
		}
	}
}

// eventsOf reads events from bytes, 12 for each.
func eventsOf(b []byte) []recording.Event {
	var events []recording.Event
	at := int64(0)
	for ; len(b) >= 12; b = b[12:] {
		at += int64(int8(b[0])) << (b[1] % 40)
		events = append(events, recording.Event{
			AtNS: at, Kind: recording.Kind(b[2]), Flags: recording.Flags(b[3]), CPU: int32(int8(b[4])),
			Thread: uint32(b[5] % 16), NextThread: uint32(b[6] % 16), Owner: uint32(b[7] % 16), NextOwner: uint32(b[8] % 16),
			TGID: uint32(b[9] % 4), Cgroup: uint64(b[9] >> 2), OwnerKind: recording.OwnerKind(b[10]), Count: uint64(b[10]),
			Text: string(b[11:12]), Period: recording.PeriodState{StoppedCPUs: uint32(b[11] & 1), QuotaNS: int64(b[11])},
		})
	}
	return events
}

func FuzzAdd(f *testing.F) {
	f.Add([]byte("\x01\x10\x01\x00\x00\x01\x02\x00\x00\x00\x00a\x01\x10\x02\x02\x00\x01\x02\x00\x00\x00\x00a\x01\x10\x0b\x02\x00\x01\x02\x00\x00\x14\x00a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, _ := anyEvents(uint64(len(b)), 0)
		a := diagnose.New(h, diagnose.Options{})
		end := int64(0)
		for _, e := range eventsOf(b) {
			a.Add(&e)
			end = e.AtNS
		}
		sound(t, a.Finish(recording.Footer{EndNS: end}))
	})
}
