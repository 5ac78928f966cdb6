package verdict

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// An answer that need not be of the time after the change decides nothing; one
// that is in part from before it is no proof that nothing changed.
func TestFreshness(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	around := func(ms float64, n int) []float64 {
		all := make([]float64, n)
		for i := range all {
			all[i] = ms * (1 + chance.Float64()/100)
		}
		return all
	}
	old, good, bad := around(97, 1000), around(12, 1000), around(300, 1000)
	mixed := slices.Concat(old[400:], good[:400])
	reversed := func(all []float64) []float64 { all = slices.Clone(all); slices.Reverse(all); return all }
	for name, tc := range map[string]struct {
		before, first, after []float64
		verdict, why         string
	}{
		"fresh":                        {old, mixed, good, Better, "p99 from"},
		"fresh, no change":             {old, nil, around(97, 1000), NoChange, "p99 from"},
		"the same as before":           {old, nil, old, Unverified, "very same answer after the change as before"},
		"twice the same":               {old, good, good, Unverified, "very same answer twice"},
		"in part from before":          {old, nil, mixed, Unverified, "600 of the 1000 latencies after the change are from before it"},
		"in part, newest first":        {reversed(old), nil, reversed(mixed), Unverified, "600 of the 1000"},
		"in part, better all the same": {old, nil, slices.Concat(old[995:], good[:995]), Better, "p99 from"},
		"in part, worse all the same":  {old, nil, slices.Concat(old[900:], bad[:900]), Worse, "p99 from"},
		"alike by chance, whole numbers": {slices.Repeat([]float64{3, 3, 3, 4}, 250), nil,
			slices.Repeat([]float64{3, 3, 3, 4, 3}, 200), NoChange, "p99 from"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(Evidence{Quantile: 0.99, Before: tc.before, First: tc.first, After: tc.after})
			if got.Verdict != tc.verdict || !strings.Contains(got.Why, tc.why) {
				t.Errorf("%s: %s", got.Verdict, got.Why)
			}
		})
	}
}

func TestShared(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		// Few values, so that runs begin anew again and again.
		end, beginning := make([]float64, chance.IntN(60)), make([]float64, chance.IntN(60))
		for i := range end {
			end[i] = float64(chance.IntN(6))
		}
		for i := range beginning {
			beginning[i] = float64(chance.IntN(6))
		}
		n := min(len(end), len(beginning), chance.IntN(60))
		copy(beginning[:n], end[len(end)-n:])
		want := 0
		for k := min(len(end), len(beginning)); k >= sharedRun; k-- {
			if slices.Equal(end[len(end)-k:], beginning[:k]) {
				want = k
				break
			}
		}
		kinds := slices.Compact(slices.Sorted(slices.Values(beginning[:want])))
		if len(kinds) < sharedKinds {
			want = 0
		}
		if got := shared(end, beginning); got != want {
			t.Fatalf("%v, %v: %d, want %d", end, beginning, got, want)
		}
	}
}
