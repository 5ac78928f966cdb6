//go:build confusion

package confusion

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/load/provoke"
	"github.com/unthrottle/unthrottle/internal/load/provoke/stage"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/study"
)

// Where results are kept, so that a run that was interrupted goes on, and the page that is generated.
const (
	confusionFile = "../../.cache/confusion.jsonl"
	confusionPage = "../../docs/results/confusion.md"
)

// window is how long a run is recorded.
const window = 2 * time.Second

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) { stage.Main(m) }

// TestConfusion runs random mixes and writes the matrix: make confusion. UNTHROTTLE_MIXES says how many; 200.
func TestConfusion(t *testing.T) {
	require.Root(t)
	require.BPF(t)
	mixes := require.Number(t, "UNTHROTTLE_MIXES", 200)
	known := map[uint64]Result{}
	have, err := study.ReadLines[Result](confusionFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range have.All {
		known[r.Seed] = r
	}
	s, kept := stage.New(t), new(probe.Kept)
	defer func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	}()
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	about := About{Kernel: strings.TrimSpace(string(release)), CPUs: provoke.CPUs, Mixes: mixes}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// What others spoilt is run again, after everything that was not run yet.
	var todo []uint64
	for _, again := range []bool{false, true} {
		for seed := range uint64(mixes) {
			if r, done := known[seed]; done == again && (!done || r.Again()) {
				todo = append(todo, seed)
			}
		}
	}
	for _, seed := range todo {
		if interrupted.Err() != nil {
			break // between two mixes, so that nothing is left behind
		}
		r := mix(t, s, kept, provoke.RandomMix(seed))
		known[seed] = r
		if err := have.Add(r); err != nil {
			t.Fatal(err)
		}
		truth, lead := r.Truth()
		fmt.Fprintf(os.Stderr, "mix %d of %d: truth %s (lead %.1f), named %s %s\n", seed+1, mixes, truth, lead, r.First(), r.Unscored())
	}
	if err := study.WritePage(confusionPage, Markdown(slices.Collect(maps.Values(known)), about)); err != nil {
		t.Fatal(err)
	}
}

// mix runs a mix with all of its ingredients and once without each.
func mix(t *testing.T, s *stage.Stage, kept *probe.Kept, m provoke.Mix) Result {
	t.Helper()
	r := Result{Seed: m.Seed, Limit: m.Limit, Window: window.Seconds()}
	run := func(without int) (e diagnose.Explanation) {
		s.Play(m.Scenario(without), func(target container.Container, others []container.Container) {
			r.Steal = max(r.Steal, s.Stolen(func() time.Duration {
				var err error
				e, err = live.Live(t.Context(), live.Options{Host: s.Tree.Host, Root: os.DirFS("/"), Target: target, Others: others,
					For: window, Probe: kept})
				if err != nil {
					t.Fatal(err)
				}
				return e.Window
			}))
			r.Strangers = max(r.Strangers, stage.Strangers(e, others))
		})
		return e
	}
	e := run(-1)
	r.Harm = harm(e)
	for _, c := range e.Causes {
		r.Named = append(r.Named, c.Cause)
	}
	if len(r.Named) == 0 {
		r.Named = []diagnose.Cause{e.Cause}
	}
	for k, i := range m.Ingredients {
		r.Ingredients = append(r.Ingredients, Ingredient{Cause: i.Cause, Strength: i.Strength, Without: harm(run(k))})
	}
	return r
}

// harm is stopped time plus waiting, in seconds.
func harm(e diagnose.Explanation) float64 {
	sum := 0.0
	if e.Stopped != nil {
		sum = e.Stopped.Seconds()
	}
	for _, d := range e.Waiting {
		sum += d.Seconds()
	}
	return sum
}
