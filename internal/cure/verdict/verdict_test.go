package verdict

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// latencies are n numbers around a mean, of which a share has tail added.
func latencies(seed uint64, n int, mean, share, tail float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	all := make([]float64, n)
	for i := range all {
		all[i] = mean * (0.8 + 0.4*r.Float64())
		if r.Float64() < share {
			all[i] += tail * (0.5 + r.Float64())
		}
	}
	return all
}

func TestJudge(t *testing.T) {
	stalled, quiet := latencies(1, 2000, 5, 0.05, 80), latencies(2, 2000, 5, 0, 0)
	for name, c := range map[string]struct {
		e    Evidence
		want string
		why  string
	}{
		"no source":                 {Evidence{Quantile: 0.99}, Unverified, "--slo"},
		"only before":               {Evidence{Quantile: 0.99, Before: quiet}, Unverified, "gave nothing"},
		"stalls end":                {Evidence{Quantile: 0.99, Before: stalled, After: quiet}, Better, "p99 from"},
		"stalls begin":              {Evidence{Quantile: 0.99, Before: quiet, After: stalled}, Worse, "p99 from"},
		"alike":                     {Evidence{Quantile: 0.99, Before: quiet, After: latencies(3, 2000, 5, 0, 0)}, NoChange, ""},
		"alike with tails":          {Evidence{Quantile: 0.99, Before: stalled, After: latencies(4, 2000, 5, 0.05, 80)}, NoChange, ""},
		"3 % is nothing":            {Evidence{Quantile: 0.5, Before: quiet, After: scaled(quiet, 1.03)}, NoChange, ""},
		"the median hides the tail": {Evidence{Quantile: 0.5, Before: quiet, After: stalled}, Worse, "longest"},
		"the longest":               {Evidence{Quantile: 1, Before: stalled, After: quiet}, Better, "the longest from"},
		"one outlier is chance": {Evidence{Quantile: 0.99, Before: quiet,
			After: append(latencies(5, 2000, 5, 0, 0), 500)}, NoChange, ""},
		"too few": {Evidence{Quantile: 0.99, Before: quiet[:499], After: quiet}, Unverified,
			"499 samples before are too few to tell p99: at least 500 are needed; ask for p95, which needs 100 " +
				"(--slo), or look 2 times as long (--for)"},
		"few": {Evidence{Quantile: 0.99, Before: quiet, After: quiet[:9]}, Unverified,
			"9 samples after are too few to tell p99: at least 500 are needed; look longer (--for)"},
		"a neighbour suffers": {Evidence{Quantile: 0.99, Before: stalled, After: quiet, Neighbours: []Neighbour{{Name: "db",
			Before: hoststate.Observed{StoppedHigh: new(0.01)},
			After:  hoststate.Observed{StoppedLow: new(0.2), StoppedHigh: new(0.5)}}}}, Worse, "db"},
		"a neighbour may suffer": {Evidence{Quantile: 0.99, Before: stalled, After: quiet, Neighbours: []Neighbour{{Name: "db",
			Before: hoststate.Observed{StoppedHigh: new(0.3)},
			After:  hoststate.Observed{StoppedLow: new(0.2), StoppedHigh: new(0.5)}}}}, Better, ""},
		"a neighbour suffers and there is no source": {Evidence{Quantile: 0.99, Neighbours: []Neighbour{{Name: "db",
			Before: hoststate.Observed{StoppedHigh: new(0.0)}, After: hoststate.Observed{StoppedLow: new(0.2)}}}}, Unverified, ""},
	} {
		j := Judge(c.e)
		if j.Verdict != c.want || !strings.Contains(j.Why, c.why) {
			t.Errorf("%s: %s (%s), want %s (%s)", name, j.Verdict, j.Why, c.want, c.why)
		}
		if len(j.Neighbours) != len(c.e.Neighbours) {
			t.Errorf("%s: the figures of the neighbours are missing", name)
		}
	}
}

// What was not measured is null in JSON, and what there is none of an empty list.
func TestJudgementInJSON(t *testing.T) {
	enough := latencies(1, 1000, 5, 0, 0)
	for _, c := range []struct {
		before, after []float64
		parts         []string
	}{
		{nil, nil, []string{`"before":null`, `"after":null`, `"neighbours":[]`, `"harmed":[]`}},
		{enough[:10], enough, []string{`"before":null`, `"after":null`}},
		{enough, enough[:10], []string{`"before":{"value_ms":`, `"after":null`}},
		{enough, enough, []string{`"before":{"value_ms":`, `"after":{"value_ms":`}},
	} {
		text, err := json.Marshal(Judge(Evidence{Quantile: 0.99, Before: c.before, After: c.after}))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range c.parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("no %s in %s", part, text)
			}
		}
	}
}

func scaled(all []float64, by float64) []float64 {
	out := make([]float64, len(all))
	for i, x := range all {
		out[i] = x * by
	}
	return out
}

// The interval of a quantile holds the true one in about 95 of 100 cases.
func TestQuantileCoverage(t *testing.T) {
	for _, q := range []float64{0.5, 0.9, 0.99} {
		held, rounds := 0, 2000
		r := rand.New(rand.NewPCG(7, 7))
		for range rounds {
			samples := make([]float64, 1000)
			for i := range samples {
				samples[i] = r.ExpFloat64()
			}
			if s, ok := Quantile(samples, q); !ok {
				t.Fatal("too few")
			} else if truth := -math.Log(1 - q); s.Low <= truth && truth <= s.High {
				held++
			}
		}
		if share := float64(held) / float64(rounds); share < 0.93 {
			t.Errorf("p%g: the interval held the true quantile in %.3f of the cases, want 0.95", 100*q, share)
		}
	}
}

func TestQuantileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 0, 700).Draw(t, "samples")
		q := rapid.SampledFrom([]float64{0.5, 0.9, 0.95, 0.99, 0.999, 1}).Draw(t, "q")
		kept := slices.Clone(samples)
		s, ok := Quantile(samples, q)
		if !slices.Equal(samples, kept) {
			t.Fatal("the samples were changed")
		}
		if ok != (len(samples) >= stats.Need(q)) {
			t.Fatalf("%d samples, ok %v", len(samples), ok)
		}
		if ok && !(s.Low <= s.Value && s.Value <= s.High && s.High <= s.Longest && slices.Contains(samples, s.Value)) {
			t.Fatalf("not in order: %+v", s)
		}
		if j := Judge(Evidence{Quantile: q, Before: samples, After: samples}); j.Verdict == Better || j.Verdict == Worse {
			t.Fatalf("the same samples are %s: %s", j.Verdict, j.Why)
		}
	})
}
