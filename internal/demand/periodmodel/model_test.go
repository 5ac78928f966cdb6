package periodmodel

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/sim/simulate/coarse"
)

const (
	ms     = time.Millisecond
	period = 100 * ms
)

var long = []time.Duration{300 * ms, time.Second}

func find(o Outcome, step int) (Candidate, bool) {
	for _, c := range o.Candidates {
		if c.Step == step {
			return c, true
		}
	}
	return Candidate{}, false
}

// The worked example of the package, over 3000 periods.
func TestExample(t *testing.T) {
	m := New(period, long...)
	for i := range 3000 {
		p := Period{Length: period}
		if i%10 == 0 {
			p.Used, p.Width = 150*ms, 4
		}
		m.Add(p)
	}
	o := m.Take(300 * time.Second)
	if o.Known != 300*time.Second {
		t.Errorf("known for %v", o.Known)
	}
	one, ok := find(o, 0)
	// Half a tick of four CPUs goes beyond the quota. At once: from between 0 and 62.5 ms on, stopped 27 ms later. Evenly:
	// stopped after 72 ms.
	if !ok || one.Throttled != 300 || math.Abs(one.Stopped.Seconds()/(300*(0.0418+0.028)/2)-1) > 0.07 ||
		one.BurstStopped != 0 || one.BurstDelay != 0 {
		t.Errorf("one CPU: %+v", one)
	}
	if math.Abs(one.Delay.Seconds()/(35*ms).Seconds()-1) > 0.2 {
		t.Errorf("delay %v, want about 35 ms", one.Delay)
	}
	if c, ok := find(o, 3); ok { // 1.68 CPUs
		t.Errorf("stopped at 1.68 CPUs: %+v", c)
	}
	if o.From != -8 { // a quarter of a CPU takes six of ten periods, and stops it in five: less stops it for most of the time
		t.Errorf("from %.3f CPUs", CPUs(o.From))
	}
	if again := m.Take(time.Second); again.Known != time.Second || len(again.Candidates) != 0 {
		t.Errorf("taken twice: %+v", again)
	}
}

// atLong is what a burst in a longer period does in an outcome.
func atLong(t *testing.T, o Outcome, every time.Duration, step int) Burst {
	t.Helper()
	for _, l := range o.Long {
		if l.Period != every {
			continue
		}
		if l.Known != o.Known || len(l.Bursts) == 0 || l.Bursts[0].Step != l.From || l.From > o.From {
			t.Fatalf("%+v", l)
		}
		for _, b := range l.Bursts {
			if b.Step == step {
				return b
			}
		}
		return Burst{Step: step}
	}
	t.Fatalf("%v: not there: %+v", every, o.Long)
	return Burst{}
}

// The same example in a period of 1 s, of which 300 ms is no part of.
func TestLongExample(t *testing.T) {
	m := New(period, 300*ms, 250*ms, time.Second, period)
	for i := range 3000 {
		p := Period{Length: period}
		if i%10 == 7 {
			p.Used, p.Width = 150*ms, 4
		}
		m.Add(p)
	}
	o := m.Take(300 * time.Second)
	if len(o.Long) != 2 { // 250 ms is no multiple, and 100 ms is its own
		t.Fatalf("%+v", o.Long)
	}
	for step := o.Long[1].From; step < 8; step++ { // 0.15 CPUs are used, and the least candidate above is 0.18
		if b := atLong(t, o, time.Second, step); (b.Stopped > 0) != (step < -10) || (b.Delay > 0) != (step < -10) {
			t.Errorf("1 s, %.2f CPUs: %+v", CPUs(step), b)
		}
	}
	// Of 300 ms a quarter of a CPU is 75 ms, with as much saved: just enough, each third or fourth.
	if b := atLong(t, o, 300*ms, o.From); b.Stopped != 0 {
		t.Errorf("300 ms: %+v", b)
	}
}

// A second of 3 CPUs each ten seconds, under limits of a CPU and more, with a burst in a period of 1 s: 2 s of CPU time are there at
// once. At a CPU it is stopped when these are spent, and until its second is over: 1 s of work waits until then. Two CPUs are enough.
func TestLongStop(t *testing.T) {
	m := New(period, long...)
	for i := range 3000 {
		p := Period{Length: period}
		if i%100 < 10 {
			p.Used, p.Width = 300*ms, 3
		}
		m.Add(p)
	}
	o := m.Take(300 * time.Second)
	one := atLong(t, o, time.Second, 0)
	// 2000 ms at 3 wide last for 667 ms.
	if math.Abs(one.Stopped.Seconds()/(30*0.333)-1) > 0.1 {
		t.Errorf("stopped for %v", one.Stopped)
	}
	// What came last waited for 33 ms, what came when it was stopped for 333 ms, and it takes as long again to do it all.
	if one.Delay < 200*ms || one.Delay > 400*ms {
		t.Errorf("delayed by %v", one.Delay)
	}
	if two := atLong(t, o, time.Second, 4); two.Stopped != 0 {
		t.Errorf("two CPUs: %+v", two)
	}
	if two := atLong(t, o, 300*ms, 4); two.Stopped == 0 { // 1.2 s with the first of the periods, then 0.6 s of 0.9
		t.Errorf("two CPUs in 300 ms: %+v", two)
	}
}

// Where a quota held it back for seconds, nothing is told of longer periods for all of the time that is taken together.
func TestLongIsNotToldOfSeconds(t *testing.T) {
	m := New(period, long...)
	add := func(periods int, p Period) {
		p.Length = period
		for range periods {
			m.Add(p)
		}
	}
	held, calm := Period{Used: period, Width: 4, Stopped: 70 * ms, Throttled: true}, Period{Used: 10 * ms, Width: 1}
	add(LongestStretch+1, held)
	add(2979, calm)
	if o := m.Take(300 * time.Second); o.Known < 297*time.Second || len(o.Long) != 0 || len(o.Candidates) > 0 {
		t.Errorf("%+v", o)
	}
	add(LongestStretch-1, held)
	add(3000-LongestStretch+1, calm)
	if o := m.Take(300 * time.Second); o.Known != 300*time.Second || len(o.Long) != 2 {
		t.Errorf("the next: %+v", o)
	}
}

// A container that comes to rest is as one that was stepped all the time, whatever a longer period has at that moment.
func TestLongAfterRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 8).Draw(t, "width")
		skipped, stepped := New(period, long...), New(period, long...)
		for range rapid.IntRange(1, 30).Draw(t, "times") {
			p := Period{Length: period, Width: width}
			p.Used = time.Duration(rapid.Int64Range(0, int64(p.Width)*int64(period)).Draw(t, "used"))
			idle := rapid.IntRange(0, 60).Draw(t, "idle")
			for range idle {
				stepped.Add(Period{Length: period, Width: width})
			}
			stepped.Add(p)
			p.Length += time.Duration(idle) * period
			skipped.Add(p)
		}
		a, b := skipped.Take(time.Minute), stepped.Take(time.Minute)
		if !reflect.DeepEqual(a.Long, b.Long) {
			t.Fatalf("%+v\n%+v", a, b)
		}
	})
}

// An idle container needs nothing.
func TestIdle(t *testing.T) {
	m := New(period, long...)
	m.Add(Period{Length: 20 * time.Second})
	if o := m.Take(20 * time.Second); o.Known != 20*time.Second || o.From != Lowest || len(o.Candidates) != 0 {
		t.Errorf("%+v", o)
	}
}

// What a quota has cut into two pieces is put together again: other limits do to it what they would have done to the
// demand without a quota.
func TestUncensored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.Int32Range(1, 8).Draw(t, "width")
		limit := coarse.Limit{QuotaNS: int64(rapid.Float64Range(0.3, 4).Draw(t, "limit") * float64(period)), PeriodNS: int64(period)}
		free, held := New(period, long...), New(period, long...)
		var s coarse.State
		for range 200 {
			work := int64(0)
			if s.BacklogNS == 0 && rapid.IntRange(0, 3).Draw(t, "busy") == 0 {
				work = rapid.Int64Range(1, min(2*limit.QuotaNS, int64(width)*int64(period))).Draw(t, "work")
			}
			p := s.Step(&limit, work, width)
			free.Add(Period{Length: period, Used: time.Duration(work), Width: int(width)})
			held.Add(Period{Length: period, Used: time.Duration(p.UsedNS), Width: int(width),
				Stopped: time.Duration(p.StoppedNS), Throttled: p.Throttled})
		}
		if s.BacklogNS > 0 {
			p := s.Step(&limit, 0, width)
			free.Add(Period{Length: period, Width: int(width)})
			held.Add(Period{Length: period, Used: time.Duration(p.UsedNS), Width: int(width)})
		}
		if a, b := free.Take(20*time.Second), held.Take(20*time.Second); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v\n%+v", a, b)
		}
	})
}

// Each tenth period 100 ms come on top of the 40 ms of any period, and a quota of 100 ms holds 40 ms back. Once it is known that
// 40 ms come after stretches, only as much counts as having waited. Where nothing comes after them, all does.
func TestWhatComesInTheLastPeriod(t *testing.T) {
	for _, always := range []time.Duration{0, 40 * ms} {
		m := New(period, long...)
		for i := range 400 {
			if i == 200 {
				m.Take(20 * time.Second)
			}
			p := Period{Length: period, Used: always, Width: 4}
			switch i % 10 {
			case 0:
				p.Used, p.Stopped, p.Throttled = 100*ms, 70*ms, true
			case 1:
				p.Used = 40*ms + always
			}
			m.Add(p)
		}
		o := m.Take(20 * time.Second)
		for step := 1; step < 4; step++ {
			c, stopped := find(o, step)
			if should := CPUs(step) < 1.4; stopped != should {
				t.Errorf("%v always: stopped at %.2f CPUs: %+v", always, CPUs(step), c)
			}
		}
	}
}

// No work is lost or made, however long it is held back.
func TestWorkIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(period, long...)
		for range rapid.IntRange(1, LongestStretch-1).Draw(t, "periods") {
			m.Add(Period{Length: period, Used: time.Duration(rapid.Int64Range(0, int64(4*period)).Draw(t, "used")),
				Width: rapid.IntRange(0, 4).Draw(t, "width"), Throttled: true,
				Stopped: time.Duration(rapid.Int64Range(0, int64(period)).Draw(t, "stopped"))})
		}
		used := int64(0)
		for _, p := range m.stretch.periods {
			used += int64(p.Used)
		}
		m.Add(Period{Length: period})
		// The lowest limit holds all that has come and has not run.
		s := &m.steps[len(m.steps)-1].plain
		all := 0.0
		for _, work := range s.delays {
			all += float64(work)
		}
		if math.Abs(all-float64(used)) > 1e-5*float64(used)+1000 {
			t.Fatalf("%.0f ns of %d", all, used)
		}
	})
}

// Where the quota holds it back for longer, what came when is not known, and the time does not count.
func TestLongStretch(t *testing.T) {
	m := New(period, long...)
	for range 100 {
		m.Add(Period{Length: period, Used: period, Width: 4, Throttled: true})
	}
	if o := m.Take(100 * period); o.Known != 0 {
		t.Errorf("under way: %+v", o)
	}
	for range 10 {
		m.Add(Period{Length: period, Used: 10 * ms, Width: 1})
	}
	// The first of these ends the stretch.
	if o := m.Take(10 * period); o.Known != 9*period || len(o.Candidates) != 0 {
		t.Errorf("%+v", o)
	}
}

// A row with more work than its last period has room for stands for rows that were lost.
func TestLostRows(t *testing.T) {
	m := New(period, long...)
	m.Add(Period{Length: 5 * period, Used: 4 * period, Width: 1})
	m.Add(Period{Length: period, Used: 10 * ms, Width: 1})
	if o := m.Take(6 * period); o.Known != period {
		t.Errorf("known for %v", o.Known)
	}
}

// A larger limit never stops it longer, and Least and At agree.
func TestCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(period, long...)
		busy := time.Duration(0)
		var c Curve
		for range rapid.IntRange(1, 3).Draw(t, "rows") {
			for range 300 {
				width := rapid.IntRange(1, 16).Draw(t, "width")
				used := time.Duration(0)
				if rapid.IntRange(0, 4).Draw(t, "busy") == 0 {
					used = time.Duration(rapid.Int64Range(0, int64(width)*int64(period)).Draw(t, "used"))
				}
				busy += used / time.Duration(width)
				m.Add(Period{Length: period, Used: used, Width: width})
			}
			o := m.Take(300 * period)
			c.Periods += float64(o.Known / period)
			c.Add(o)
		}
		c.Busy = busy
		last := 2.0
		for place := Lowest * 2; place < 2*8*PerDoubling; place++ {
			p, ok := c.At(CPUs(0)*math.Exp2(float64(place)/2/PerDoubling), Setting{})
			if !ok {
				continue
			}
			const rounding = 1.15 // of four digits
			if p.StoppedShare > last*rounding+1e-6 || p.StoppedShare < 0 || p.StoppedShare > 1 ||
				p.ThrottledShare < 0 || p.ThrottledShare > 1 {
				t.Fatalf("%+v after %v", p, last)
			}
			last = p.StoppedShare
		}
		for _, with := range []Setting{{}, OwnBurst, {Burst: true, Period: long[0]}, {Burst: true, Period: long[1]}} {
			may := Point{StoppedShare: rapid.Float64Range(0, 0.2).Draw(t, "may"),
				Delay: time.Duration(rapid.Int64Range(0, int64(period)).Draw(t, "delay"))}
			least := c.Least(may, with)
			fits := func(step int) bool {
				p, ok := c.At(CPUs(step), with)
				return ok && p.StoppedShare <= may.StoppedShare+1e-9 && p.Delay <= may.Delay
			}
			step := int(math.Ceil(math.Log2(least)*PerDoubling - 1e-9))
			if !fits(step) || step > Lowest && fits(step-1) {
				t.Fatalf("with %+v, may %+v: %.3f CPUs are called enough; step %d", with, may, least, step)
			}
		}
	})
}

// BenchmarkAdd is one period of a container that is up to 16 wide.
func BenchmarkAdd(b *testing.B) {
	m := New(period, long...)
	r := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		m.Add(Period{Length: period, Used: time.Duration(r.Int64N(int64(2 * period))), Width: 1 + r.IntN(16)})
	}
}

// A period makes no garbage, throttled or not.
func TestAddAllocatesNothing(t *testing.T) {
	m, p := New(period, long...), Period{Length: period, Used: 3 * period, Width: 8, Stopped: 60 * ms}
	add := func() {
		for range 6 {
			p.Throttled = true
			m.Add(p)
		}
		p.Throttled = false
		m.Add(p)
	}
	add()
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
