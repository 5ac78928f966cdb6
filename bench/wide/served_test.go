package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/slow"
)

// servedAs is a piece's record, of a service that uses half a CPU for the requests of its case.
func servedAs(p piece) record {
	p99 := map[string]float64{capacity.Quota: 80, capacity.Weight: 20, noCredit: 100}[p.Remedy]
	if p99 == 0 {
		p99 = 40
	}
	p99 += float64(p.Repeat)
	f := &servedFigures{figures: figures{Requests: 600, P50: new(2.0), P99: &p99, CPUUsed: new(0.5 * p.Times)}, ServedCPUs: 7}
	if p.Remedy == capacity.Quota {
		f.Periods, f.Throttled, f.ThrottledSeconds = new(uint64(120)), new(uint64(30)), new(1.5)
	}
	return record{Piece: p, Served: f, Calibration: slow.Result{OK: true}}
}

// Each service is sized first, by two pieces; then each round has each variant once, and another one first.
func TestServedPlan(t *testing.T) {
	require.Unraced(t, "a plan has no goroutines")
	have, plan := &records{}, wholePlan()
	began := plan.hours(have)
	var batches int
	for n := 0; ; n++ {
		pieces := plan.missing(have)
		if len(pieces) == 0 {
			break
		}
		if n > 1000 {
			t.Fatalf("still asks for %v", pieces[0])
		}
		if _, first := have.timesOf(servedK, pieces[0].Shape); n < sizings && (pieces[0].Kind != sized || first == nil) {
			t.Errorf("%v before its size is known", pieces[0])
		}
		now := batch(pieces, 5*time.Hour)
		batches++
		for _, p := range now {
			if p.Shape != now[0].Shape || p.Repeat != now[0].Repeat {
				t.Errorf("%v and %v in one guest", now[0], p)
			}
			if have.has(p) {
				t.Errorf("%v again", p)
			}
			have.All = append(have.All, servedAs(p))
		}
	}
	all := len(services.Wide())
	if want := sizings*(all+1) + servedRounds*(all+1); batches != want {
		t.Errorf("%d guests, want %d", batches, want)
	}
	if left := plan.hours(have); left != 0 || began < 10 || began > 100 {
		t.Errorf("%.1f hours at first, %.1f at last", began, left)
	}
	for _, c := range services.Wide() {
		first := map[string]bool{}
		for round := 1; round <= servedRounds; round++ {
			var of []string
			for _, r := range have.All {
				if r.Piece.Kind == served && r.Piece.Shape == c.Name && r.Piece.Repeat == round && r.Piece.Machine.K == servedK {
					of = append(of, r.Piece.Remedy)
					if got := r.Piece.Times; math.Abs(got-2*c.Use) > 0.011 {
						t.Errorf("%v: want %g times", r.Piece, 2*c.Use)
					}
				}
			}
			want := slices.DeleteFunc(slices.Clone(servedVariants), func(v string) bool {
				return v == capacity.Pools && c.Setting.Name == ""
			})
			if sorted := slices.Sorted(slices.Values(of)); !slices.Equal(sorted, slices.Sorted(slices.Values(want))) {
				t.Errorf("%s, round %d: %v", c.Name, round, of)
			}
			if i := slices.Index(of, capacity.Pools); i > 0 && i < len(of)-1 {
				t.Errorf("%s, round %d: %v: sized pools are between others", c.Name, round, of)
			}
			first[slices.DeleteFunc(of, func(v string) bool { return v == capacity.Pools })[0]] = true
		}
		if len(first) < 3 {
			t.Errorf("%s: rounds begin with %v", c.Name, first)
		}
	}
	// The page reads all of it.
	have.asked = map[piece]bool{}
	text := markdown(have)
	if unread := have.unread(); len(unread) > 0 {
		t.Errorf("no page reads %v", unread[0])
	}
	for _, want := range []string{
		"10 of 10 services have at least 5 whole rounds", "| 25 (25 to 25) | 1.50 (1.50 to 1.50) |",
		"| quota | 5 | 2.0 (2.0 to 2.0) | 83.0 (81.0 to 85.0) | 3.61 (3.40 to 3.86) | 1.00 (1.00 to 1.00) |",
		"`nginx-wide`, narrow without credit: p99 is longer than with the quota in each of 5 rounds",
		"| pools sized by the limit | it has no setting |", "Its pools are sized by worker_processes.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "is not stopped by the quota") || strings.Contains(text, "%!") {
		t.Error(text)
	}
}

// A plan can be narrowed, to names that there are.
func TestChosenServices(t *testing.T) {
	p := wholePlan()
	if err := p.choose("nginx-wide,node-wide", "quota,burst"); err != nil || len(p.names) != 2 || len(p.variants) != 2 || p.control != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	p = wholePlan()
	if err := p.choose("all", ""); err != nil || len(p.names) != len(services.Wide()) || p.control != controlK {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range [][2]string{{"nginx", ""}, {"", "pools "}} {
		p := wholePlan()
		if err := p.choose(bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), "choose from") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// What is chosen is measured without what is not.
	p = wholePlan()
	_ = p.choose("node-wide", "quota")
	have := &records{}
	for n := range 9 {
		pieces := p.missing(have)
		if len(pieces) == 0 {
			if n != sizings+servedRounds {
				t.Errorf("%d pieces", n)
			}
			return
		}
		have.All = append(have.All, servedAs(pieces[0]))
	}
	t.Error("it does not end")
}

func TestServedLimits(t *testing.T) {
	const ms = time.Millisecond
	for variant, want := range map[string]cgroup.Limit{
		capacity.Quota:   {Quota: 200 * ms, Period: 100 * ms},
		capacity.Pools:   {Quota: 200 * ms, Period: 100 * ms},
		capacity.Burst:   {Quota: 200 * ms, Period: 100 * ms, Burst: 200 * ms},
		capacity.Burst1s: {Quota: 2000 * ms, Period: 1000 * ms, Burst: 2000 * ms},
		capacity.Weight:  cgroup.Unlimited(), capacity.Pin: cgroup.Unlimited(),
		noCredit: cgroup.Unlimited(), capacity.NarrowSchedExt: cgroup.Unlimited(),
	} {
		if got := servedLimit(variant, 2); got != want {
			t.Errorf("%s: %+v, want %+v", variant, got, want)
		}
	}
	if got := servedOn(8).String(); got != "1-7" {
		t.Error(got)
	}
}

func TestServedFigures(t *testing.T) {
	var latency loadgen.Latency
	for ms := 1; ms <= 100; ms++ {
		latency.Add(time.Duration(ms) * time.Millisecond)
	}
	result := func(intended, answered uint64) loadgen.Result {
		of := loadgen.StreamResult{Intended: intended, Answered: answered, Failed: intended - answered, Latency: latency}
		return loadgen.Result{Phases: []loadgen.PhaseResult{{}, {Streams: []loadgen.StreamResult{of}}}, FirstFailure: "refused"}
	}
	streams := []loadgen.Stream{{PerSecond: 50}}
	looks := [2]cgroup.Stat{{Bandwidth: true, Periods: 10, ThrottledPeriods: 2, Throttled: time.Second, Usage: new(time.Second)},
		{Bandwidth: true, Periods: 130, ThrottledPeriods: 32, Throttled: 3 * time.Second, Usage: new(13 * time.Second)}}
	f, err := servedFiguresOf(result(100, 99), streams, looks, 12*time.Second)
	if err != nil || *f.CPUUsed != 1 || *f.throttledShare() != 25 || *f.ThrottledSeconds != 2 || f.Failed != 1 || f.Requests != 100 ||
		math.Abs(*f.P99-99) > 0.2 || f.Load != 50 {
		t.Errorf("%+v, %v", f, err)
	}
	// Without a quota no period is counted.
	looks[1].Periods = looks[0].Periods
	f, err = servedFiguresOf(result(100, 100), streams, looks, 12*time.Second)
	if err != nil || f.Periods != nil || f.throttledShare() != nil {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := servedFiguresOf(result(100, 0), streams, looks, time.Second); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	late := result(100, 100)
	late.Own = loadgen.Own{Sends: 100, LateSends: 50}
	if _, err := servedFiguresOf(late, streams, looks, time.Second); err == nil || !strings.Contains(err.Error(), "late") {
		t.Error(err)
	}
	looks[0].Usage = nil
	if _, err := servedFiguresOf(result(100, 100), streams, looks, time.Second); err == nil {
		t.Error("used nothing that was measured")
	}
}

// A guest with services has the packages of all of them, one without has none.
func TestServedPackages(t *testing.T) {
	if got := packagesOf(missing(&records{})); got != nil {
		t.Errorf("shapes need %v", got)
	}
	got := packagesOf([]piece{sizedOf(servedK, "node-wide", 1, 1)})
	if !slices.Contains(got, "nodejs") || !slices.Contains(got, "nginx-light") || !slices.IsSorted(got) {
		t.Error(got)
	}
}
