package report

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/unthrottle/unthrottle/fleet/generate"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// Of fleets whose truth is known: what the report reads off is the truth, what comes back is within a tenth of it, and services that save
// do.
func TestTruth(t *testing.T) {
	for seed := range uint64(4) {
		dir := t.TempDir()
		truth, err := generate.Make(t.Context(), dir, generate.Options{Hosts: 5, Containers: 120, Seed: seed, Start: noon, Hours: 12, Bound: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		d, err := asked(t, dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		if d.Containers != 120 || d.Hosts != 5 || int(d.Input.Rows) != truth.Rows || len(d.Services) != len(truth.Services) || len(d.Unknown) != 0 {
			t.Errorf("seed %d: %d containers, %d hosts, %d rows, %d services, unknown %+v", seed, d.Containers, d.Hosts, d.Input.Rows, len(d.Services), d.Unknown)
		}
		near(t, "cores now", &d.Ledger.CoresNow, truth.CoresNow)
		saved := truth.CoresNow // of the remedies that the report chose
		for _, want := range truth.Services {
			got := serviceOf(t, d, want.Name)
			near(t, want.Name+": stopped", got.StoppedShare, math.Round(want.StoppedShare*1e6)/1e6)
			after := want.CoresAfter
			if *got.Remedy == view.Burst {
				after = want.CoresAfterBurst
			}
			saved -= after
			const step = 0.1 // of a limit
			slack := step * float64(want.Containers)
			if after < *got.CoresAfterLow-slack-1e-6 || after > *got.CoresAfterHigh+slack+1e-6 {
				t.Errorf("seed %d, %s: needs %.1f with %s, told %.1f to %.1f", seed, want.Name, after, *got.Remedy, *got.CoresAfterLow, *got.CoresAfterHigh)
			}
			if comes, told := *got.CoresNow-after, *got.CoresNow-*got.CoresAfter; comes > slack != (told > slack) && math.Abs(comes-told) > slack {
				t.Errorf("seed %d, %s: %.1f cores come back, told %.1f", seed, want.Name, comes, told)
			}
			if got.ByBounds != 0 {
				t.Errorf("seed %d, %s: %d containers by bounds", seed, want.Name, got.ByBounds)
			}
			if got.Containers != want.Containers {
				t.Errorf("seed %d, %s: %d containers, told %d", seed, want.Name, want.Containers, got.Containers)
			}
		}
		if math.Abs(d.Ledger.Saved/saved-1) > 0.1 || saved < d.Ledger.SavedLow || saved > d.Ledger.SavedHigh {
			t.Errorf("seed %d: %.1f cores can go, the report says %.1f, %.1f to %.1f", seed, saved, d.Ledger.Saved, d.Ledger.SavedLow, d.Ledger.SavedHigh)
		}
	}
}

// Equal seeds make equal files, another seed others; truth.json has what Make returns.
func TestGeneratedAgain(t *testing.T) {
	of := func(seed uint64) (string, []byte) {
		dir := t.TempDir()
		if _, err := generate.Make(t.Context(), dir, generate.Options{Hosts: 2, Containers: 7, Seed: seed, Start: noon, Hours: 1, Bound: 0.001}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "truth.json"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := os.ReadFile(filepath.Join(dir, "cluster=generated", "date=2026-11-25", "hour=12", "n00001.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text), rows
	}
	truth, rows := of(3)
	again, rowsAgain := of(3)
	other, _ := of(4)
	if truth != again || string(rows) != string(rowsAgain) || truth == other {
		t.Error("a seed is no fleet")
	}
	var read generate.Truth
	if err := json.Unmarshal([]byte(truth), &read); err != nil || read.Containers != 7 || len(read.Services) != 3 {
		t.Errorf("%+v, %v", read, err)
	}
}
