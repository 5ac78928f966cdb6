package policy

import (
	"math"
	"testing"

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
	if c := Choose(Corrected(f, []txn.Past{outcome("/a", "burst", 10, 10, 40), outcome("/b", "narrow", 10, 10, 90)}), Terms{}); f.Rows[c.Row].Remedy.Name != "narrow" {
		t.Errorf("%+v", c)
	}
	if c := Choose(f, Terms{}); f.Rows[c.Row].Remedy.Name != "burst" {
		t.Errorf("%+v", c)
	}
}
