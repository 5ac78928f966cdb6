package sampled

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// The figures are those of the simulated host, within what samples every 10 to 15 ms tell.
func TestFigures(t *testing.T) {
	h := truths["a pool that stops another one"].make(3)
	a, hostUsed := h.look(8*time.Second, 10*ms)
	s := a.Finish(hostUsed)
	near := func(what string, got, want time.Duration, share float64) {
		if d := (got - want).Abs(); float64(d) > share*float64(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("used", s.Used, h.used*8000/8200, 0.05)
	var pools time.Duration
	for _, p := range s.Pools {
		pools += p.CPU
	}
	near("CPU time of all pools", pools, s.Used, 0.05)
	near("stopped", *s.Stopped, h.counters.Throttled/time.Duration(h.cpus), 0.1)
	if c := s.Levels[0].Counters; c == nil || c.ThrottledPeriods+3 < h.counters.ThrottledPeriods || c.Stopped != *s.Stopped {
		t.Errorf("%+v, the host counted %+v", c, h.counters)
	}
}

// What is not read is not known: no stopped time without counters, nobody to wait for without what the host used, and no cause.
func TestNotRead(t *testing.T) {
	h := truths["a pool that is wide for short times"].make(1)
	a, _ := h.look(3*time.Second, 10*ms)
	blind := New(a.target)
	for range 300 {
		h.step()
		s := h.sample(h.now)
		s.Counters, s.Used = []*Counters{nil, nil}, nil
		for range 40 {
			h.step()
		}
		blind.Add(s)
	}
	e := blind.Finish(nil).Explain()
	if e.Stopped != nil || e.Periods != nil || e.ThrottledPeriods != nil || e.Cause != "" ||
		!strings.Contains(e.Verdict, "was not measured") {
		t.Errorf("%v %v %v %q: %s", e.Stopped, e.Periods, e.ThrottledPeriods, e.Cause, e.Verdict)
	}
	for _, r := range []diagnose.Reason{diagnose.OwnQuota, diagnose.AncestorQuota, diagnose.OwnThreads, diagnose.ByNeighbours} {
		if _, ok := e.Waiting[r]; ok {
			t.Errorf("waiting by %s is told", r)
		}
	}
	a.target.Levels = nil // nor any limit
	if e := New(a.target).Finish(nil).Explain(); e.Cause != "" || !e.LimitUnknown || e.Stopped != nil {
		t.Errorf("%q: %s", e.Cause, e.Verdict)
	}
	if len(e.NotMeasured) == 0 || len(e.Pools) == 0 || e.Pools[0].Delay != nil || e.Pools[0].Response != nil {
		t.Errorf("%q, %+v", e.NotMeasured, e.Pools)
	}
}

// What happens between episodes counts for nothing, and no thread's time of before it.
func TestEpisodes(t *testing.T) {
	a := New(Target{Levels: []recording.Level{{Path: "/a", QuotaNS: new(int64(50 * ms)), PeriodNS: int64(100 * ms)}}})
	at, ran := time.Duration(0), 100*time.Hour
	for i := range 100 {
		s := &Sample{At: at, Apart: i == 50, Counters: []*Counters{{Periods: uint64(at / (100 * ms))}}}
		s.Threads = []Thread{{PID: 1, TID: 1, Comm: "a", Ran: ran, Waited: time.Hour}}
		if i == 70 {
			s.Threads = append(s.Threads, Thread{PID: 1, TID: 9, Comm: "b-1", Ran: 50 * time.Hour})
		}
		a.Add(s)
		at, ran = at+10*ms, ran+ms
		if i == 49 {
			at, ran = at+time.Minute, ran+30*time.Second
		}
	}
	s := a.Finish(nil)
	if s.Window != 980*ms || s.Used != 98*ms || len(s.Pools) != 1 || s.Pools[0].CPU != s.Used || s.Levels[0].Counters.Periods > 10 {
		t.Errorf("window %v, used %v, %+v, %+v", s.Window, s.Used, s.Pools, s.Levels[0].Counters)
	}
}

// A stop that began before the first sample counts from there.
func TestStopFromBefore(t *testing.T) {
	a := New(Target{Levels: []recording.Level{{Path: "/a", QuotaNS: new(int64(50 * ms)), PeriodNS: int64(100 * ms)}}})
	for i := range 3 {
		s := &Sample{At: time.Duration(i) * 10 * ms, Counters: []*Counters{{}}, Threads: []Thread{{PID: 1, TID: 1, Comm: "a"}}}
		if i > 0 {
			s.Counters[0] = &Counters{Periods: 1, ThrottledPeriods: 1, Throttled: 90 * ms}
			s.Threads[0].Ran, s.Threads[0].Waited, s.Threads[0].Runs = ms, 90*ms, 1
		}
		a.Add(s)
	}
	s := a.Finish(nil)
	if *s.Stopped <= 0 || *s.Stopped > 10*ms || s.Pools[0].Stopped > *s.Stopped || s.Levels[0].Counters.ThrottledPeriods != 1 {
		t.Errorf("stopped %v, %+v, %+v", *s.Stopped, s.Pools, s.Levels[0].Counters)
	}
}

// However many threads and names there are, a bounded number is followed, and the rest is counted. Names are safe to print.
func TestBounds(t *testing.T) {
	a := New(Target{})
	for round := range 2 {
		s := &Sample{At: time.Duration(round) * 10 * ms}
		for i := range uint32(3 * MaxThreads) {
			s.Threads = append(s.Threads, Thread{PID: i, TID: i, Comm: "\x1b[31m" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) +
				string(rune('a'+i/676%26)), Ran: time.Duration(round) * ms})
		}
		a.Add(s)
	}
	s := a.Finish(nil)
	if len(s.Pools) > MaxPools || a.Unread() != 4*MaxThreads {
		t.Errorf("%d pools, %d not read", len(s.Pools), a.Unread())
	}
	if slices.ContainsFunc(s.Pools, func(p diagnose.SampledPool) bool { return slices.Contains([]byte(p.Name), 0x1b) }) {
		t.Error("a name is not escaped")
	}
}

// Whatever the counters say, no time is negative, and nothing is longer than the window.
func FuzzAnalysis(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz"), int64(50), int64(100))
	f.Fuzz(func(t *testing.T, data []byte, quota, period int64) {
		a := New(Target{CPUsAllowed: 2, CPUsOnline: 4, Levels: []recording.Level{{QuotaNS: new(quota * 1e6), PeriodNS: period * 1e6},
			{QuotaNS: new(period), PeriodNS: quota}}})
		at := time.Duration(0)
		next := func() uint64 {
			if len(data) < 4 {
				return 0
			}
			v := binary.LittleEndian.Uint32(data)
			data = data[4:]
			return uint64(v)
		}
		for n := 0; len(data) >= 4 && n < 400; n++ {
			at += time.Duration(next())
			s := &Sample{At: at, Apart: next()%16 == 0, Counters: []*Counters{{next(), next(), time.Duration(next())}, nil}}
			for i := range uint32(next() % 4) {
				s.Threads = append(s.Threads, Thread{PID: 1, TID: i, Comm: string(rune(next() % 128)), Ran: time.Duration(next()),
					Waited: time.Duration(next()), Runs: next()})
			}
			a.Add(s)
		}
		used := time.Duration(next())
		s := a.Finish(&used)
		if s.Stopped != nil && (*s.Stopped < 0 || *s.Stopped > s.Window) || s.Used < 0 || s.Window < 0 || s.Above > s.Window ||
			s.BehindOwn < 0 || s.BehindOthers < 0 {
			t.Fatalf("%+v", s)
		}
		for _, p := range s.Pools {
			if p.CPU < 0 || p.CPUThrottled < 0 || p.CPUThrottled > p.CPU || p.Stopped < 0 || p.Stopped > s.Window || p.ByOwnQuota < 0 ||
				p.ByOthers < 0 || p.ByOwnThreads < 0 {
				t.Fatalf("%+v", p)
			}
		}
		s.Explain()
	})
}
