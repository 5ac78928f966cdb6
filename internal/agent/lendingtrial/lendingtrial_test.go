package lendingtrial

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/observe"
)

const retryAfter = time.Hour

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// tried lets a trial run on an owner whose use is that of a function, and returns
// how many rounds the CPUs were lent and revoked.
func tried(t *testing.T, tr *Trial, rounds int, from time.Time, used func(i int, lent bool) float64) (lent, back, writes int) {
	t.Helper()
	out := tr.out
	for i := range rounds {
		u, at := used(i, !out), from.Add(time.Duration(i)*time.Second)
		now := at.Add(time.Second)
		o := observe.Observation{Start: at, Window: time.Second, UsedCPUs: &u}
		want := tr.Round(Look{Again: retryAfter, CPUs: "2-3", Out: out, Seen: &o, Lasts: Rounds * time.Second}, now)
		if want == Revoke && out || want == Grant && !out {
			t.Fatalf("round %d: written twice", i)
		}
		if want != Nothing {
			out = want == Revoke
			writes++
			tr.Written(now.Add(100 * time.Millisecond)) // in the next round
		}
		if out {
			back++
		} else {
			lent++
		}
	}
	return lent, back, writes
}

func TestTrial(t *testing.T) {
	steady := func(cpus float64) func(int, bool) float64 {
		return func(int, bool) float64 { return cpus }
	}
	for _, c := range []struct {
		name   string
		used   func(int, bool) float64
		harmed bool
	}{
		{"an owner at rest", steady(0), false},
		{"a busy owner that loses nothing", steady(1.98), false},
		{"one that loses 1 %", func(_ int, lent bool) float64 { return map[bool]float64{true: 1.98, false: 2}[lent] }, false},
		{"one that loses half", func(_ int, lent bool) float64 { return map[bool]float64{true: 1, false: 2}[lent] }, true},
		{"one that loses a fifth of little",
			func(_ int, lent bool) float64 { return map[bool]float64{true: 0.16, false: 0.2}[lent] }, false},
		{"one whose work grows", func(i int, _ bool) float64 { return min(2, float64(i)*0.02) }, false},
		{"one that works every other 12 rounds", func(i int, _ bool) float64 { return float64(i / 12 % 2) }, false},
	} {
		var tr Trial
		lent, back, writes := tried(t, &tr, 300, start, c.used)
		if tr.Harmed != c.harmed {
			t.Errorf("%s: harmed %v", c.name, tr.Harmed)
		}
		if !c.harmed && (back > 60 || writes%2 != 0 || lent+back != 300) {
			t.Errorf("%s: lent for %d of 300 rounds, %d writes", c.name, lent, writes)
		}
		if c.harmed && lent > 25 {
			t.Errorf("%s: lent for %d rounds", c.name, lent)
		}
	}
}

// Of an owner whose use is nothing but chance no more count as harmed than the
// comparison promises.
func TestTrialByChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const owners = 2000
	harmed := 0
	for range owners {
		var tr Trial
		level := 0.0
		tried(t, &tr, 60, start, func(i int, _ bool) float64 {
			if i%6 == 0 {
				level = 2 * rng.Float64()
			}
			return level
		})
		if tr.Harmed {
			harmed++
		}
	}
	if harmed > owners/20 {
		t.Errorf("%d of %d owners harmed by nothing", harmed, owners)
	}
}

// Harm is forgotten after a while; a change is looked into sooner than the rest;
// what another program gave or took, and other CPUs, begin a new trial.
func TestTrialOverTime(t *testing.T) {
	var tr Trial
	half := func(_ int, lent bool) float64 { return map[bool]float64{true: 1, false: 2}[lent] }
	tried(t, &tr, 60, start, half)
	if !tr.Harmed || !tr.out {
		t.Fatalf("%+v", tr)
	}
	if _, _, writes := tried(t, &tr, 60, start.Add(retryAfter/2), half); writes != 0 {
		t.Error("lent again at once")
	}
	if _, _, writes := tried(t, &tr, 60, start.Add(2*retryAfter), half); writes == 0 || !tr.Harmed {
		t.Errorf("not tried again: %+v", tr)
	}
	tr = Trial{}
	tried(t, &tr, 30, start, func(int, bool) float64 { return 2 })
	if _, _, writes := tried(t, &tr, 200, start.Add(time.Minute), func(int, bool) float64 { return 2 }); writes != 0 {
		t.Errorf("%d writes though nothing has changed", writes)
	}
	if tried(t, &tr, 200, start.Add(5*time.Minute), half); !tr.Harmed {
		t.Error("a change is not looked into")
	}
	u := 1.0
	o := observe.Observation{Start: start, Window: time.Second, UsedCPUs: &u}
	other := Look{Again: retryAfter, CPUs: "6-7", Out: true, Seen: &o, Lasts: time.Second}
	if got := tr.Round(other, start); got != Grant || tr.Harmed {
		t.Errorf("other CPUs: %v, %+v", got, tr)
	}
	if got := tr.Round(other, start); got != Nothing || tr.Running {
		t.Errorf("still revoked after the grant: %v, %+v", got, tr)
	}
	o.UsedCPUs = nil
	if got := tr.Round(other, start.Add(time.Hour)); got != Nothing {
		t.Errorf("not measured: %v", got)
	}
}

// A host so busy that rounds come late and then many at once, in which the
// kernel's counters stand still, changes nothing: time counts, not rounds.
func TestTrialOnABusyHost(t *testing.T) {
	var tr Trial
	out, at, pending := false, start, 0.0
	for i := range 400 {
		window := 2 * time.Millisecond
		if i%3 == 0 {
			window = 400 * time.Millisecond
		}
		alone := map[bool]float64{true: 1, false: 0.01}[out]
		pending += alone * window.Seconds()
		u := 0.0
		if window > 10*time.Millisecond {
			u, pending = pending/window.Seconds(), 0
		}
		o := observe.Observation{Start: at, Window: window, UsedCPUs: &u}
		at = at.Add(window)
		l := Look{Again: retryAfter, CPUs: "1", Out: out, Seen: &o, Lasts: Rounds * 100 * time.Millisecond}
		if want := tr.Round(l, at); want != Nothing {
			out = want == Revoke
			tr.Written(at)
		}
	}
	if !tr.Harmed {
		t.Errorf("harm is not found: %+v", tr)
	}
}

// An owner at rest uses no less CPU with its CPUs lent, but its wake-ups may come
// later: its own latencies tell, where it has a source.
func TestTrialAsksLatencies(t *testing.T) {
	for _, c := range []struct {
		name        string
		lent, alone float64 // ms; below 0: the source fails
		harmed      bool
	}{
		{"later", 5, 1, true},
		{"as soon", 1, 1, false},
		{"sooner", 1, 5, false},
		{"it failed", -1, 1, false},
		{"it failed alone", 5, -1, false},
	} {
		var tr Trial
		out, asked, u := false, 0, 0.02
		for i := range 60 {
			at := start.Add(time.Duration(i) * time.Second)
			l := Look{Again: retryAfter, CPUs: "1", Out: out, Seen: &observe.Observation{Start: at, Window: time.Second, UsedCPUs: &u},
				Lasts: Rounds * time.Second, Quantile: 0.99,
				Latencies: func(time.Time) []float64 {
					asked++
					ms := map[bool]float64{true: c.alone, false: c.lent}[out]
					if ms < 0 {
						return nil
					}
					all := make([]float64, 1000)
					for i := range all {
						all[i] = ms + float64(i)/1e6
					}
					return all
				}}
			if want := tr.Round(l, at.Add(time.Second)); want != Nothing {
				out = want == Revoke
				tr.Written(at.Add(time.Second))
			}
		}
		if want := map[bool]int{true: 2 * trialPairs, false: 2}[c.harmed]; tr.Harmed != c.harmed || asked != want {
			t.Errorf("%s: harmed %v, asked %d times, want %d", c.name, tr.Harmed, asked, want)
		}
	}
}
