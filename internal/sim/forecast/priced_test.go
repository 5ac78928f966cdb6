package forecast

import (
	"context"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/objective"
)

// The least values are found whatever the three answers are, and no value is judged twice.
func TestLeast(t *testing.T) {
	for n := range 70 {
		for is := 0; is <= n; is += 3 { // n: none
			may, surely := is-min(is, 4), min(n, is+5)
			judged, seen := 0, map[int]bool{}
			found, err := least(n, func(i int) (verdict, error) {
				if judged++; seen[i] {
					t.Fatalf("%d of %d was judged twice", i, n)
				}
				seen[i] = true
				return verdict{i >= may, i >= is, i >= surely}, nil
			})
			or := func(i int) int {
				if i == n {
					return -1
				}
				return i
			}
			if want := (leastOf{or(may), or(is), or(surely)}); err != nil || found != want || judged > 16 {
				t.Errorf("of %d from %d on: %+v after %d, %v", n, is, found, judged, err)
			}
		}
	}
}

// What each remedy needs of a service whose truth is plain: 8 threads wake together every 250 ms for 8 ms each, and
// the limit is 0.5 CPUs.
func TestPriced(t *testing.T) {
	replays := 0
	each := func(of int, do func(int) error) error {
		for i := range of {
			if err := do(i); err != nil {
				return err
			}
		}
		replays += of
		return nil
	}
	f, err := Make(loadOf(t, burstsFor(40, "http-worker", 8*ms)), Options{Seeds: 5, Seed: 1, Price: true, Each: each})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]Priced{}
	for _, p := range f.Priced {
		rows[pricedName(p.Remedy)] = p
		if (p.CPUs == nil) != (p.Why != "") {
			t.Errorf("%+v", p)
		}
		if p.CPUs != nil && (*p.Low > *p.CPUs || p.High != nil && *p.High < *p.CPUs || *p.Judged > *p.Bound*toleratedP99 ||
			*p.CPUs < 0.256*(1-collapseShare)) {
			t.Errorf("%s: %v CPUs from %v to %v, %v of %v ms", p.Remedy.Name, *p.CPUs, *p.Low, p.High, *p.Judged, *p.Bound)
		}
	}
	if len(rows) != len(priceable) || replays > 800 {
		t.Errorf("%d remedies in %d replays", len(rows), replays)
	}
	// The recorded limit is no worse than itself. What a burst lets be spent at once needs no more than what is used:
	// 0.256 CPUs.
	if p := rows[Limit]; p.CPUs == nil || *p.CPUs > 0.5 || p.High == nil || *p.High > 0.5 {
		t.Errorf("by the quota alone: %+v", p)
	}
	if p := rows[Burst]; p.CPUs == nil || *p.CPUs > 0.31 || p.Remedy.Burst == 0 || p.Remedy.Limit != *p.CPUs {
		t.Errorf("by a burst: %+v", p)
	}
	// Nor does more at once, give or take what is tried apart.
	for _, period := range LongPeriods {
		r := Remedy{Name: Burst, Period: period}
		if p := rows[pricedName(r)]; p.CPUs == nil || *p.CPUs > 1.1**rows[Burst].CPUs ||
			bandwidth.QuotaOf(*p.CPUs, period)-p.Remedy.Burst > 10*bandwidth.Unit || p.Remedy.Period != period {
			t.Errorf("by a burst in %v: %+v", period, p)
		}
	}
	// Half of the threads have no CPU at first where there are fewer than six: the median is longer then.
	if p := rows[Pin]; p.CPUs == nil || *p.CPUs != 6 || p.Remedy.CPUs != 6 {
		t.Errorf("by a pin: %+v", p)
	}
	for name, why := range map[string]string{
		Narrow: "this kernel cannot narrow by sched_ext",
		Budget: "no process is of a language that has the library",
	} {
		if rows[name].Why != why {
			t.Errorf("%s: %q", name, rows[name].Why)
		}
	}
}

// Where the time is up, what was found stays, and the rest says so.
func TestPricedInTime(t *testing.T) {
	l := loadOf(t, bursts())
	left := 2 * len(l.remedies(nil, 0, false))
	for range 40 {
		left += 10
		each := stopAfter(left)
		f, err := Make(l, Options{Seeds: 2, Seed: 1, Price: true, Each: each})
		if err != nil {
			t.Fatal(err)
		}
		late := false
		for _, p := range f.Priced {
			late = late || p.Why == "the time was up"
			if late && p.CPUs != nil {
				t.Errorf("%s was found after the time was up", p.Remedy.Name)
			}
		}
		if !late {
			return
		}
	}
	t.Errorf("after %d replays the time is up still: %v", left, context.DeadlineExceeded)
}

// An objective is kept with fewer CPUs if it is looser than what was recorded, and with none if no quota stops what is too slow. One whose
// quantile the recording cannot tell is none.
func TestPriceForAnObjective(t *testing.T) {
	each := func(n int, do func(i int) error) error {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	limit := func(goal objective.Objective) (*Forecast, Priced) {
		f, err := Price(loadOf(t, drawPriced(1).recorded()), false, goal, each)
		if err != nil || f.Judged == nil || f.Judged.Of != OfRequests || f.Priced[0].Bound == nil {
			t.Fatalf("%v: %+v", err, f)
		}
		return f, f.Priced[0]
	}
	f, same := limit(objective.Objective{})
	bound := func(factor float64) objective.Objective {
		return objective.Objective{Quantile: f.Judged.Quantile, Bound: time.Duration(factor * *same.Bound * float64(time.Millisecond))}
	}
	loose := bound(3)
	if _, p := limit(loose); *p.Bound != milliseconds(loose.Bound) || *p.CPUs >= *same.CPUs || *p.Judged > *p.Bound {
		t.Errorf("for %s: %v CPUs for %v ms; as recorded %v CPUs", loose, *p.CPUs, *p.Bound, *same.CPUs)
	}
	if _, p := limit(bound(0.9)); p.CPUs != nil || p.Why == "" {
		t.Errorf("no quota stops it, and still it is faster with %v CPUs: %+v", *p.CPUs, p)
	}
	if _, p := limit(objective.Objective{Quantile: 0.999999, Bound: time.Second}); *p.Bound != *same.Bound {
		t.Errorf("of a quantile that cannot be told: %+v", p)
	}
}
