package report

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/fleet/generate"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// Of fleets in which services got remedies half-way, and whose truth is known: what came of each remedy, in all and by the
// day, is the truth, and so are the time lines of single containers, and how many are worse; what was promised is within a tenth
// of it.
func TestTruthOfApplied(t *testing.T) {
	const hours = 72
	remedies, worse := map[string]int{}, 0
	for _, seed := range []uint64{0, 2} {
		dir := t.TempDir()
		truth, err := generate.Make(t.Context(), dir, generate.Options{Hosts: 5, Containers: 100, Seed: seed, Start: noon, Hours: hours,
			Bound: 0.001, Drawn: true, Priced: 1, Treated: 0.8, Joined: true})
		if err != nil {
			t.Fatal(err)
		}
		d, err := asked(t, dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "cores now", &d.Ledger.CoresNow, truth.CoresNow)
		if len(d.Applied) != len(truth.Applied) {
			t.Fatalf("seed %d: %d remedies, told %d", seed, len(truth.Applied), len(d.Applied))
		}
		for i, want := range truth.Applied {
			a, name := d.Applied[i], fmt.Sprintf("seed %d, %s", seed, want.Remedy)
			t.Logf("%s: %d containers, stopped for %.4f, then %.4f, foretold %s, %.1f cores, then %.1f, promised %.1f, told %.1f; %d worse, told "+
				"%d of %d", name, want.Containers, want.StoppedBefore, want.StoppedAfter, shown(a.StoppedForecast), want.CoresBefore,
				want.CoresAfter, want.Promised, *a.SavedPromised, want.Worse, a.Worse, a.Compared)
			if a.Remedy != want.Remedy || a.Containers != want.Containers || a.Promised != want.Containers ||
				len(a.Days) != len(want.Days) {
				t.Fatalf("%s: %+v, want %+v", name, a, want)
			}
			for what, v := range map[string]struct {
				told  *float64
				truth float64
			}{
				"stopped before": {a.StoppedBefore, want.StoppedBefore}, "stopped after": {a.StoppedAfter, want.StoppedAfter},
				"cores before": {a.CoresBefore, want.CoresBefore}, "cores after": {a.CoresAfter, want.CoresAfter},
				"came": {a.Came, want.CoresBefore - want.CoresAfter},
			} {
				asTrue(t, name+", "+what, v.told, v.truth)
			}
			if math.Abs(*a.SavedPromised/want.Promised-1) > 0.1 || want.Promised < *a.SavedLow-1e-6 || want.Promised > *a.SavedHigh+1e-6 {
				t.Errorf("%s: promised %.1f, told %.1f, %.1f to %.1f", name, want.Promised, *a.SavedPromised, *a.SavedLow, *a.SavedHigh)
			}
			if a.Compared != want.Containers || a.Worse != want.Worse {
				t.Errorf("%s: %d of %d are worse, told %d of %d", name, want.Worse, want.Containers, a.Worse, a.Compared)
			}
			for j, day := range want.Days {
				name := fmt.Sprintf("%s, day %d", name, day.Day)
				asTrue(t, name+", stopped", &a.Days[j].StoppedShare, day.StoppedShare)
				asTrue(t, name+", cores", a.Days[j].Cores, day.Cores)
				if a.Days[j].Day != day.Day || a.Days[j].Containers != day.Containers {
					t.Errorf("%s: %+v, want %+v", name, a.Days[j], day)
				}
			}
			remedies[a.Remedy], worse = remedies[a.Remedy]+1, worse+want.Worse
		}
		compareRollouts(t, &d, &truth, noon.Add(hours/2*time.Hour))
	}
	if len(remedies) != 3 || worse == 0 {
		t.Errorf("fleets with %v, %d containers worse", remedies, worse)
	}
}

func asTrue(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 2e-6 {
		t.Errorf("%s: %s, want %v", what, shown(got), want)
	}
}

// compareRollouts compares time lines: each service's load is the same every day, so that a line's mean over a day is its
// share of all time.
func compareRollouts(t *testing.T, d *view.Document, truth *generate.Truth, from time.Time) {
	t.Helper()
	treated, of := 0, map[string]*generate.Service{}
	for i := range truth.Services {
		if of[truth.Services[i].Name] = &truth.Services[i]; truth.Services[i].Treated != nil {
			treated++
		}
	}
	if len(d.Rollouts) != treated {
		t.Errorf("%d time lines of %d services", len(d.Rollouts), treated)
	}
	for _, r := range d.Rollouts {
		s := of[r.Service]
		if r.Remedy != s.Treated.Remedy || r.Containers != s.Containers || len(r.Lines) != min(s.Containers, mostRolloutLines) {
			t.Errorf("%s in %d of %s, %d lines; want %+v", r.Remedy, r.Containers, r.Service, len(r.Lines), s)
		}
		for _, line := range r.Lines {
			if line.Since.Before(from) || !line.Since.Before(from.Add(time.Hour)) {
				t.Errorf("%s: since %v", line.Pod, line.Since)
			}
			var mean [2]float64
			for i, share := range line.StoppedShare {
				if share == nil {
					t.Fatalf("%s: no row of half hour %d", line.Pod, i)
				}
				mean[i/rolloutSlots] += *share / rolloutSlots
			}
			for i, want := range []float64{s.StoppedShare, s.Treated.StoppedShare} {
				if math.Abs(mean[i]-want) > 0.005*want+1e-6 { // a slot more or less of a level
					t.Errorf("%s: stopped for %v, then %v, want %+v", line.Pod, mean[0], mean[1], s)
				}
			}
		}
	}
}
