package demo

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const tms = time.Millisecond

func TestEdges(t *testing.T) {
	for _, c := range []struct {
		most time.Duration
		want []time.Duration
	}{
		{10 * tms, []time.Duration{10 * tms, 15 * tms}},
		{14 * tms, []time.Duration{10 * tms, 15 * tms}},
		{15 * tms, []time.Duration{10 * tms, 15 * tms, 20 * tms}},
		{192 * tms, []time.Duration{10 * tms, 20 * tms, 40 * tms, 60 * tms, 80 * tms, 100 * tms, 120 * tms, 140 * tms,
			160 * tms, 180 * tms, 200 * tms}},
		{550 * tms, []time.Duration{10 * tms, 50 * tms, 100 * tms, 150 * tms, 200 * tms, 250 * tms, 300 * tms,
			350 * tms, 400 * tms, 450 * tms, 500 * tms, 550 * tms, 600 * tms}},
	} {
		if got := edges(10*tms, c.most); !slices.Equal(got, c.want) {
			t.Errorf("up to %v: %v, want %v", c.most, got, c.want)
		}
	}
}

func TestHistogramHoldsEachValueOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(int64(10*tms), int64(3*time.Hour)).Draw(t, "took"))
		})
		values := rapid.SliceOfN(length, 1, 50).Draw(t, "values")
		shared := edges(10*tms, slices.Max(values))
		if len(shared) > maxBins+1 || !slices.IsSorted(shared) || shared[0] != 10*tms || shared[len(shared)-1] <= slices.Max(values) {
			t.Fatalf("edges %v for up to %v", shared, slices.Max(values))
		}
		bins := histogram(shared, values)
		for i, b := range bins {
			want := 0
			for _, v := range values {
				if v >= shared[i] && v < shared[i+1] {
					want++
				}
			}
			if b.Count != want {
				t.Fatalf("bin %+v: want %d of %v", b, want, values)
			}
		}
	})
}
