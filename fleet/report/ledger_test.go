package report

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

func TestSurvives(t *testing.T) {
	for _, c := range []struct {
		on   map[string]int
		fail int
		want float64
		of   int
	}{
		{map[string]int{"a": 2, "b": 1, "c": 1}, 0, 1, 0},
		{map[string]int{"a": 2, "b": 1, "c": 1}, 1, 2, 1}, // the host with most
		{map[string]int{"a": 2, "b": 1, "c": 1}, 2, 4, 2},
		{map[string]int{"a": 2, "b": 1, "c": 1}, 3, 4, 2}, // one is left
		{map[string]int{"a": 2, "b": 1, "c": 1}, 9, 4, 2},
		{map[string]int{"a": 2}, 9, 1, 0},
		{nil, 1, 1, 0},
	} {
		if got, of := survives(c.on, c.fail); got != c.want || of != c.of {
			t.Errorf("%v without %d hosts: %v, %v, want %v, %v", c.on, c.fail, got, of, c.want, c.of)
		}
	}
}

// carts is a service of four containers on two hosts that need 3.7 of their 8 CPUs each, and one of a single container
// that needs 3.7 of 4.
func carts(t *testing.T, fail int) view.Document {
	t.Helper()
	var rows []demand.Row
	for slot := range 3 {
		at := noon.Add(time.Duration(slot) * demand.SlotLength)
		for no := range 4 {
			rows = append(rows, rowOf("cart", no, at, 8, 4))
		}
		rows = append(rows, rowOf("single", 7, at, 4, 4))
	}
	dir := t.TempDir()
	if err := store.Write(dir, rows); err != nil {
		t.Fatal(err)
	}
	d, err := Make(t.Context(), opened(t, 0), Options{Files: filesIn(t, dir), Now: noon.Add(time.Hour), Bound: 0.001, Failover: fail})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Where a host may fail the containers that are left carry twice as much, and no container gets more than it has.
func TestFailover(t *testing.T) {
	without, with, none := carts(t, 0), carts(t, 1), carts(t, 2)
	missing(t, "not asked for", without.Ledger.Failover)
	near(t, "4 x (7.3 - 3.7)", with.Ledger.Failover, 4*3.6)
	near(t, "after", &with.Ledger.CoresAfter, 4*7.3+3.7)
	near(t, "limit", serviceOf(t, with, "cart/app").Limit, 7.3)
	near(t, "saved", &with.Ledger.Saved, 36-4*7.3-3.7)
	near(t, "nobody is left: as for all hosts but one", none.Ledger.Failover, 4*3.6)
	near(t, "after that", &none.Ledger.CoresAfter, with.Ledger.CoresAfter)
	for _, c := range []struct {
		of                       view.Document
		what                     string
		ofCart, ofSingle, ofHalf int
	}{{without, "none", 0, 0, 2}, {with, "one", 1, 0, 2}, {none, "two", 1, 0, 2}} {
		cart, single := serviceOf(t, c.of, "cart/app"), serviceOf(t, c.of, "single/app")
		if cart.FailoverHosts != c.ofCart || single.FailoverHosts != c.ofSingle || cart.Half == nil || cart.Half.Containers != c.ofHalf {
			t.Errorf("%s: %+v, %+v", c.what, cart, single)
		}
	}
	if without.FailoverHosts != 0 || without.FailoverNone != 0 || with.FailoverHosts != 1 || with.FailoverNone != 1 ||
		none.FailoverNone != 2 {
		t.Errorf("%+v, %+v, %+v", without, with, none)
	}
}

// Half as many containers need less together than all, between the mean and as much; twice as many need more.
func TestShards(t *testing.T) {
	d := carts(t, 0)
	s, single := serviceOf(t, d, "cart/app"), serviceOf(t, d, "single/app")
	// A second in five minutes at 4 CPUs, a third of the time at 1: two seldom meet, but what needs 3.63 alone has another
	// beside it.
	const mean = 104.0 / 300
	if s.Half.Containers != 2 || s.Double.Containers != 8 || s.Half.Limit < 3.7 || s.Half.Limit > 5.2 ||
		s.Double.Limit < 2.5 || s.Double.Limit > 3.7 {
		t.Errorf("%+v, %+v", s.Half, s.Double)
	}
	for _, of := range []*view.Shards{s.Half, s.Double} {
		near(t, "all", &of.Cores, float64(of.Containers)*of.Limit)
		if of.CoresLow > of.Cores || of.CoresHigh < of.Cores || of.CoresLow < 4*mean || of.CoresHigh > 8*4 {
			t.Errorf("%+v", of)
		}
	}
	if single.Half != nil || single.Double == nil || single.Double.Containers != 2 {
		t.Errorf("of one: %+v, %+v", single.Half, single.Double)
	}
	// On two hosts: half as many are two, of which one is left and carries both; twice as many are eight, of which four
	// are left.
	failing := serviceOf(t, carts(t, 1), "cart/app")
	for _, of := range [][2]*view.Shards{{s.Half, failing.Half}, {s.Double, failing.Double}} {
		if ratio := of[1].Limit / of[0].Limit; math.Abs(ratio-2) > 0.05 {
			t.Errorf("a host fails: %+v, else %+v", of[1], of[0])
		}
	}
}

// Waiting is a part of what threads wanted; where it was not measured it is not known.
func TestContended(t *testing.T) {
	r, old, wrong := rowOf("cart", 1, noon, 8, 4), rowOf("old", 2, noon, 8, 4), rowOf("wrong", 3, noon, 8, 4)
	for _, of := range []*demand.Row{&r, &wrong} {
		of.WaitingQuotaSeconds, of.WaitingAncestorSeconds, of.WaitingContentionSeconds,
			of.WaitingUnclearSeconds = new(4.0), new(2.0), new(10.4), new(5.2)
	}
	*wrong.WaitingContentionSeconds = 1000
	d, _ := written(t, r, old, wrong)
	s := serviceOf(t, d, "cart/app")
	near(t, "at least", s.ContendedShareLow, 0.1)
	near(t, "at most", s.ContendedShare, 0.15)
	missing(t, "not measured", serviceOf(t, d, "old/app").ContendedShare)
	if !slices.ContainsFunc(d.Input.Problems, func(p view.Problem) bool {
		return p.Why == "its threads waited for more time than they wanted a CPU" && p.Rows == 1
	}) {
		t.Errorf("%+v", d.Input.Problems)
	}
}

// How long stops take is by the periods of all of a service's rows. A row with an impossible stop is left out.
func TestStopLengths(t *testing.T) {
	first, then, other, wrong := rowOf("cart", 1, noon, 8, 4), rowOf("cart", 2, noon, 8, 4),
		rowOf("other", 3, noon, 8, 4), rowOf("wrong", 4, noon, 8, 4)
	first.Stops = []demand.Stop{{Microseconds: 12288, Periods: 60}, {Microseconds: 49152, Periods: 1}}
	then.Stops = []demand.Stop{{Microseconds: 12288, Periods: 37}, {Microseconds: 98304, Periods: 2}}
	wrong.Stops = []demand.Stop{{Microseconds: 2_000_000, Periods: 1}}
	d, _ := written(t, first, then, other, wrong)
	s := serviceOf(t, d, "cart/app")
	near(t, "median", s.StopP50, 12.288)
	near(t, "p99", s.StopP99, 98.304)
	missing(t, "never stopped", serviceOf(t, d, "other/app").StopP99)
	if !slices.ContainsFunc(d.Input.Problems, func(p view.Problem) bool {
		return strings.HasPrefix(p.Why, "a stop is longer than a period may be") && p.Rows == 1
	}) {
		t.Errorf("%+v", d.Input.Problems)
	}
}
