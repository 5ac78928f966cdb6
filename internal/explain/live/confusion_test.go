//go:build confusion

package live

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/bench/confusion"
	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/load/provoke"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Where results are kept, so that a run that was interrupted goes on, and the page that is generated.
const (
	confusionFile = "../../../.cache/confusion.jsonl"
	confusionPage = "../../../docs/results/confusion.md"
)

// TestConfusion runs random mixes and writes the matrix: make confusion. UNTHROTTLE_MIXES says how many; 200.
func TestConfusion(t *testing.T) {
	require.Root(t)
	require.BPF(t)
	mixes := require.Number(t, "UNTHROTTLE_MIXES", 200)
	known := map[uint64]confusion.Result{}
	have, err := study.ReadLines[confusion.Result](confusionFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range have.All {
		known[r.Seed] = r
	}
	s, p := newStage(t), openProbe(t)
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	about := confusion.About{Kernel: strings.TrimSpace(string(release)), CPUs: provoke.CPUs, Mixes: mixes}
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
		r := s.mix(p, provoke.RandomMix(seed))
		known[seed] = r
		if err := have.Add(r); err != nil {
			t.Fatal(err)
		}
		truth, lead := r.Truth()
		fmt.Fprintf(os.Stderr, "mix %d of %d: truth %s (lead %.1f), named %s %s\n", seed+1, mixes, truth, lead, r.First(), r.Unscored())
	}
	if err := study.WritePage(confusionPage, confusion.Markdown(slices.Collect(maps.Values(known)), about)); err != nil {
		t.Fatal(err)
	}
}

// mix runs a mix with all of its ingredients and once without each.
func (s *stage) mix(p *probe.Probe, m provoke.Mix) confusion.Result {
	s.t.Helper()
	r := confusion.Result{Seed: m.Seed, Limit: m.Limit, Window: window.Seconds()}
	run := func(without int) (e diagnose.Explanation) {
		s.play(m.Scenario(without), func(target container.Container, others []container.Container) {
			var stolen float64
			e, stolen = s.explained(p, target, others)
			r.Steal = max(r.Steal, stolen)
			r.Strangers = max(r.Strangers, strangers(e, others))
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
		r.Ingredients = append(r.Ingredients, confusion.Ingredient{Cause: i.Cause, Strength: i.Strength, Without: harm(run(k))})
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
