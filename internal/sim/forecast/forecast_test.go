package forecast

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/objective"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// TestRows checks rows with a known answer: only the quota hurts, so without it, or with exclusive CPUs,
// nothing is throttled.
func TestRows(t *testing.T) {
	l := loadOf(t, bursts())
	f, err := Make(l, Options{Seeds: 3, Seed: 1, HostLoad: 0.9, From: 1, To: 3})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]Row{}
	for _, row := range f.Rows {
		name := row.Remedy.Name
		if row.HostLoad > 0 {
			name += " on a full host"
		}
		if _, ok := rows[name]; !ok {
			rows[name] = row
		}
		if row.Refused != "" || row.Figures.Response.P99 == nil {
			t.Errorf("%s %v: refused %q, %+v", name, row.Remedy.Parameters(), row.Refused, row.Figures.Response)
		}
		if row.Remedy.Modelled() != (row.Error == nil) {
			t.Errorf("%s: modelled %v, error %+v", name, row.Remedy.Modelled(), row.Error)
		}
	}
	p99 := func(name string) float64 { return *rows[name].Figures.Response.P99 }
	for _, name := range []string{Pin, Weight, Raise} {
		if row := rows[name]; row.Figures.ThrottledPeriods != 0 || row.Figures.Stopped != 0 || !row.Meets {
			t.Errorf("%s: %+v", name, row.Figures)
		}
	}
	// 8 threads of 8 ms: at once, one after the other, and over a refill.
	if p99(Weight) > 8.1 || p99(Pin) < 60 || p99(Pin) > 65 || p99(None) < 90 || rows[None].Meets {
		t.Errorf("p99 by weight %.1f ms, pinned %.1f, left %.1f", p99(Weight), p99(Pin), p99(None))
	}
	// On a full host exclusive CPUs do as well as before, shared ones do not.
	if p99(Pin+" on a full host") > p99(Pin)*1.05 || p99(Weight+" on a full host") < 2*p99(Weight) {
		t.Errorf("on a full host: pinned %.1f ms, by weight %.1f", p99(Pin+" on a full host"), p99(Weight+" on a full host"))
	}
	// A burst suffices but for the first period, which begins with one quota; a raise always suffices.
	if got := f.Rows[f.Cheapest].Remedy; got.Name != Burst && (got.Name != Raise || got.Factor != 1.5) {
		t.Errorf("cheapest: %+v", got)
	}
	if at := rows[Weight].CollapsesAt; at != nil {
		t.Errorf("8 CPUs without a quota collapse at %v times 0.26 CPUs", *at)
	}
}

// stopAfter is Options.Each whose time is up after n calls in all.
func stopAfter(n int) func(int, func(int) error) error {
	return func(of int, do func(int) error) error {
		for i := range of {
			if n--; n < 0 {
				return context.DeadlineExceeded
			}
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
}

// When the time is up, the complete rounds of replays are the forecast, the same as one of so many seeds.
func TestTimeUp(t *testing.T) {
	l := loadOf(t, bursts())
	o := Options{Seeds: 3, Seed: 1, HostLoad: 0.9, Smallest: true}
	rows := len(l.remedies(nil, 0, false))
	tooSlow := new(TooSlow)
	o.Each = stopAfter(rows - 1)
	if _, err := Make(l, o); !errors.As(err, &tooSlow) || tooSlow.Done != rows-1 || tooSlow.Of != rows {
		t.Errorf("before a replay of each row: %v", err)
	}
	o.Each = stopAfter(2*rows + 1)
	cut, err := Make(l, o)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Make(l, Options{Seeds: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(cut.Rows, two.Rows) || cut.SmallestLimit != nil {
		t.Errorf("%d rows, and %d of two seeds; smallest limit %v", len(cut.Rows), len(two.Rows), cut.SmallestLimit)
	}
	want := []string{
		"the time was up: each row was replayed 2 of 3 times, so its error is less certain",
		"the time was up: the rows of a fuller host are left out",
		"the time was up: the search for the smallest limit is left out",
	}
	if !slices.Equal(cut.LeftOut, want) || !slices.Equal(cut.Notes[len(cut.Notes)-len(want):], want) {
		t.Errorf("left out %q, notes %q", cut.LeftOut, cut.Notes)
	}
}

// The search finds the load at which a row breaks whatever loads it tries first.
func TestBreaksBetweenTheLoadsTried(t *testing.T) {
	l := loadOf(t, bursts())
	breaks := func(to float64) float64 {
		f, err := Make(l, Options{Seeds: 2, Seed: 1, From: 1, To: to,
			Objective: &Objective{Objective: objective.Objective{Quantile: 0.99, Bound: 100 * ms}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range f.Rows {
			if row.Remedy.Name == Pin && row.HostLoad == 0 && row.BreaksAt != nil {
				return *row.BreaksAt
			}
		}
		t.Fatal("64 ms of work every 250 ms, on one CPU, break at no load")
		return 0
	}
	// From 250/64 times the load on there is more work than one CPU can do.
	five, seven := breaks(5), breaks(7)
	if five < 3.6 || five > 4.4 || math.Abs(five/seven-1) > 0.03 {
		t.Errorf("breaks at %.3f, or at %.3f: want one load, some 3.9", five, seven)
	}
}

// With an objective, rows tell whether they keep it, up to which load, and the smallest limit that does.
func TestObjective(t *testing.T) {
	l := loadOf(t, bursts())
	f, err := Make(l, Options{Seeds: 2, Seed: 1, From: 1, To: 4,
		Objective: &Objective{Objective: objective.Objective{Quantile: 0.99, Bound: 20 * ms}, Pool: "http-worker-*"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range f.Rows {
		// 64 ms of work within 20 ms, which no earlier quota pays, and that of a second does.
		want := row.Remedy.Name == Weight || row.Remedy.Name == Raise ||
			row.Remedy.Name == Period && row.Remedy.Period == bandwidth.MaxPeriod
		if row.Remedy.Modelled() || row.Remedy.Name == Burst || row.Meets == want && (row.BreaksAt == nil || *row.BreaksAt > 1) == want {
			continue
		}
		t.Errorf("%s: meets %v, breaks at %v", row.Remedy.Name, row.Meets, row.BreaksAt)
	}
	if f.SmallestLimit == nil || *f.SmallestLimit < 0.55 || *f.SmallestLimit > 0.75 {
		t.Errorf("the smallest limit is %v, about 64 ms in a period are needed", f.SmallestLimit)
	}
	if r := f.SmallestRange; r == nil || r.High != *f.SmallestLimit || r.Low > r.High || r.Low < 0.5 {
		t.Errorf("the range of the smallest limit is %v", r)
	}
	kept := 0
	for seed := range 20 {
		one, err := l.run(trial{remedy: Remedy{Name: Raise, Factor: *f.SmallestLimit / l.limit}, load: 1, seed: 1000 + uint64(seed)})
		if err != nil {
			t.Fatal(err)
		}
		if withinBound(20*ms, l.mergedTimes([]result{one}, "http-worker-*").Response.Quantile(0.99)) {
			kept++
		}
	}
	if kept < 18 {
		t.Errorf("%d of 20 other runs keep the objective at the smallest limit, want nine of ten", kept)
	}
	// 64 ms on 4 CPUs take 16.
	if f.SmallestNarrow == nil || *f.SmallestNarrow != 4 {
		t.Errorf("narrow to %v, want 4", f.SmallestNarrow)
	}
	_, err = Make(l, Options{Seeds: 1, Objective: &Objective{Objective: objective.Objective{Quantile: 0.99, Bound: ms}, Pool: "none"}})
	if unknown := new(UnknownPool); !errors.As(err, &unknown) || unknown.Name != "none" {
		t.Errorf("an unknown pool: %v", err)
	}
}

// Of several pools that are too wide, the remedies resize the one with the most work, or all of them.
func TestPoolsResized(t *testing.T) {
	s := rt.New(32).Limit(50*ms, 100*ms).Process("java")
	http, job, one := s.Threads("http-worker", 8), s.Threads("job-worker", 8), s.Threads("single", 1)
	s.Repeat(8, 250*ms, func(at time.Duration) {
		s.Work(at, 4*ms, http...)
		s.Work(at, 1*ms, job...)
		s.Work(at, 1*ms, one...)
	})
	l := loadOf(t, s.Run(2*time.Second))
	widest := map[int]int{}
	for _, r := range l.remedies(nil, 0, false) {
		if r.Name != Pools {
			continue
		}
		result, err := l.run(trial{remedy: r, load: 1, seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		at := r.Pool
		if at != AllPools && l.Pools[at].Name != "http-worker-*" {
			t.Errorf("pool %s is resized, which does less work", l.Pools[at].Name)
		}
		widest[min(0, at)] = result.widest
	}
	// One thread of the pool, eight of the other and the single one; or one of each.
	if len(widest) != 2 || widest[0] < 8 || widest[0] > 10 || widest[AllPools] > 3 || widest[AllPools] < 1 {
		t.Errorf("at most so many CPUs at once: %v", widest)
	}
}

// The same recording and seed give the same forecast.
func TestRepeats(t *testing.T) {
	l := loadOf(t, bursts())
	for _, r := range []Remedy{{Name: None}, {Name: Pin, CPUs: 1}, {Name: Pools, CPUs: 1}} {
		trial := trial{remedy: r, load: 1.5, hostLoad: 0.9, seed: 7}
		a, err := l.run(trial)
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.run(trial)
		if err != nil {
			t.Fatal(err)
		}
		if a.throttledPeriods != b.throttledPeriods || a.stopped != b.stopped || a.events != b.events || a.cpu != b.cpu {
			t.Errorf("%+v: %+v then %+v", r, a, b)
		}
	}
}
