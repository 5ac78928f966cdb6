package fix

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// A recording that was kept is chosen from if the work was the same. The "before" is recorded anew, for as long as the
// "after".
func TestChoosesFromAKeptRecording(t *testing.T) {
	for _, tc := range []struct {
		name    string
		use     float64 // times that of the recording, as now seen
		missing string
		notKept string
		length  time.Duration // of the new recordings; 0: long enough to judge by
	}{
		{"the same work", 1, "", "", 0},
		{"too few backlogs before the change", 1, "", "", 2 * time.Second},
		{"other work", 0.7, "", "it has other work", 0},
		{"there is none", 1, "the flight recorder has none of it", "the flight recorder has none of it", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t)
			b.learns(curetest.Bursts)
			b.options.Yes = true
			learn := b.env.Learn
			kept, err := learn(t.Context(), b.options.Target, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			kept.From, kept.Runs = "a file", nil // its runs are never compared
			b.used = tc.use * *kept.Explanation.MeanWidth
			b.env.Earlier = func(context.Context) (Learned, string) { return kept, tc.missing }
			want, recorded := 2, 0
			if b.length = tc.length; b.length > 0 {
				want++ // for longer
			}
			b.env.Learn = func(ctx context.Context, c container.Container, d time.Duration) (Learned, error) {
				recorded++
				return learn(ctx, c, d)
			}
			got, err := b.run()
			if err != nil || got.Verdict != verdict.Better || recorded != want {
				t.Fatalf("%s, %v, %d recordings: %s", got.Verdict, err, recorded, got.Why)
			}
			known := got.Proposal.Known
			if fromKept := tc.notKept == ""; (known.From == "a file") != fromKept || !strings.Contains(known.NotEarlier, tc.notKept) {
				t.Errorf("from %q, not kept: %q", known.From, known.NotEarlier)
			}
			held, err := apply.Status(b.env.Apply)
			if err != nil || len(held) != 1 || strings.Contains(held[0].Outcome.Note, "; chosen from a file") != (tc.notKept == "") {
				t.Errorf("in force %+v, %v", held, err)
			}
		})
	}
}
