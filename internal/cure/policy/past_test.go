package policy

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/txn"
)

func outcome(target, remedy string, low, high, came float64) txn.Past {
	return txn.Past{InForce: txn.InForce{Target: target, Remedy: remedy,
		Expected: &txn.Expected{PoolP99MsLow: &low, PoolP99MsHigh: &high}, Outcome: &txn.Outcome{After: &txn.Figures{PoolP99Ms: &came}}}}
}

func TestCorrections(t *testing.T) {
	got := Corrections("/a", []txn.Past{
		outcome("/a", "burst", 10, 10, 40), // four times as long: one outcome counts half
		outcome("/a", "pin", 10, 40, 20),   // the middle of the interval
		outcome("/a", "narrow", 10, 10, 1e6),
		outcome("/b", "raise", 10, 10, 40),
		{InForce: txn.InForce{Target: "/a", Remedy: "weight"}},
	})
	for remedy, want := range map[string]float64{"burst": 2, "pin": 1, "narrow": mostCorrection} {
		if math.Abs(got[remedy]-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", remedy, got[remedy], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// A remedy whose forecast was twice too good before no longer wins, and the forecast itself is not changed.
func TestPastOutcomesMoveTheChoice(t *testing.T) {
	f := made(2, none(90, 2), burst(30, 2), narrow(40, 2))
	if c := Choose(corrected(f, map[string]float64{"burst": 2}), Terms{}); f.Rows[c.Row].Remedy.Name != "narrow" {
		t.Errorf("%+v", c)
	}
	f.Path = "/a"
	if c := Choose(Corrected(f, []txn.Past{outcome("/a", "burst", 10, 10, 40), outcome("/b", "narrow", 10, 10, 90)}),
		Terms{}); f.Rows[c.Row].Remedy.Name != "narrow" {
		t.Errorf("%+v", c)
	}
	if c := Choose(f, Terms{}); f.Rows[c.Row].Remedy.Name != "burst" {
		t.Errorf("%+v", c)
	}
}

// Where each outcome takes twice as long as the replay says, the factor of the next forecast comes near two, and the
// journal's forecast stays that of the replay.
func TestCorrectionsConvergeOnTheTruth(t *testing.T) {
	const replayed, truth, outcomes = 20.0, 2.0, 20
	for _, w := range []Wish{{Auto: true}, {Request: remedy.Request{Kind: remedy.Burst}}} {
		f, a := facts(t, 8, 2)
		rows := made(2, none(90, 2), burst(replayed, 2))
		rows.Path = a.Group.Path
		observation := seen(a, 2, 1, 400*time.Millisecond)
		var past []txn.Past
		for range outcomes {
			p, err := Propose(observation, f, w, &Known{Forecast: rows, Corrections: Corrections(rows.Path, past)})
			if err != nil || p.Plan == nil || p.Plan.Expected == nil {
				t.Fatal(p.Why, err)
			}
			past = append(past, txn.Past{InForce: txn.InForce{Target: rows.Path, Remedy: string(p.Plan.Remedy), Expected: p.Plan.Expected,
				Outcome: &txn.Outcome{After: &txn.Figures{PoolP99Ms: new(replayed * truth)}}}})
		}
		if got := Corrections(rows.Path, past)["burst"]; math.Abs(got-truth) > 0.1 {
			t.Errorf("auto %v: after %d outcomes of twice the forecast the factor is %.3g", w.Auto, outcomes, got)
		}
		if e := past[outcomes-1].Expected; *e.PoolP99MsLow > replayed || *e.PoolP99MsHigh < replayed {
			t.Errorf("auto %v: the journal keeps %g to %g ms for a replay of %g ms", w.Auto, *e.PoolP99MsLow, *e.PoolP99MsHigh, replayed)
		}
	}
}
