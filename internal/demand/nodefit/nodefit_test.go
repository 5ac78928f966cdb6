package nodefit

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/demand/packing"
)

// constant is a load that always wants the same.
func constant(requested, wanted float64) *Load {
	l := &Load{RequestedCPUs: requested}
	packing.NewRule(0.001).Add(&l.Wants, []packing.Moments{{Mean: wanted}}, wanted)
	return l
}

func TestWhyNot(t *testing.T) {
	for name, c := range map[string]struct {
		cpus      float64
		node, pod *Load
		ratio     float64
		want      string
	}{
		"requests full, demand low":     {4, constant(4, 1.2), constant(1, 0.5), 1.5, ""},
		"the ratio is lower":            {4, constant(4, 1.2), constant(1, 0.5), 1.2, TooManyRequests},
		"exactly the ratio":             {4, constant(4, 1.2), constant(2, 0.5), 1.5, ""},
		"requests low, demand full":     {4, constant(1, 3.9), constant(1, 0.5), 1.5, TooMuchDemand},
		"exactly full":                  {4, constant(1, 3.5), constant(1, 0.5), 1.5, ""},
		"off":                           {4, constant(40, 39), constant(1, 0.5), 1, ""},
		"nothing runs there":            {4, &Load{}, constant(1, 0.5), 1.5, ""},
		"nothing, and the pod too much": {4, &Load{}, constant(1, 5), 1.5, TooMuchDemand},
		"a node without CPUs":           {0, &Load{}, constant(1, 0.5), 1.5, TooManyRequests},
	} {
		r := Rule{Rule: packing.NewRule(0.001), MaxRequestsRatio: c.ratio}
		if got := r.WhyNot(c.cpus, r.With(c.cpus, c.node, c.pod)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestScore(t *testing.T) {
	least := Rule{Rule: packing.NewRule(0.001), MaxRequestsRatio: 1}
	most := least
	most.Most = true
	for _, c := range []struct {
		cpus, tail  float64
		least, most int64
	}{{4, 0, 100, 0}, {4, 1, 75, 25}, {4, 4, 0, 100}, {4, 4.1, 0, 0}, {0, 0, 0, 0}} {
		w := With{TailCPUs: c.tail}
		if l, m := least.Score(c.cpus, w), most.Score(c.cpus, w); l != c.least || m != c.most {
			t.Errorf("%v of %v CPUs: %d and %d, want %d and %d", c.tail, c.cpus, l, m, c.least, c.most)
		}
	}
}

// One more pod never lowers what a node's pods want for all but the risk, nor the sum of requests.
func TestMorePods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rule{Rule: packing.NewRule(0.001), MaxRequestsRatio: 2}
		load := func(name string, n int) *Load {
			l := &Load{}
			for range n {
				low, width := rapid.Float64Range(0, 2).Draw(t, name), rapid.Float64Range(0, 30).Draw(t, name)
				share := rapid.SampledFrom([]float64{0.0005, 0.01, 0.3, 0.9}).Draw(t, name)
				l.RequestedCPUs += low + 0.1
				spread := width * width * share * (1 - share)
				r.Add(&l.Wants, []packing.Moments{{Mean: low + share*width, Variance: spread, Third: width * spread * (1 - 2*share)}},
					low+width)
			}
			return l
		}
		node, pod := load("node", rapid.IntRange(0, 9).Draw(t, "pods")), load("pod", 1)
		before, after := r.With(8, node, &Load{}), r.With(8, node, pod)
		if after.TailCPUs < before.TailCPUs || after.RequestsRatio <= before.RequestsRatio || math.IsNaN(after.TailCPUs) {
			t.Fatalf("before %+v, after %+v", before, after)
		}
	})
}

// What is reserved is not there for demand, while requests may still use the whole node.
func TestReserve(t *testing.T) {
	r := Rule{Rule: packing.NewRule(0.001), MaxRequestsRatio: 1.5, Reserve: 0.1}
	for _, c := range []struct {
		with  With
		why   string
		score int64
	}{
		{With{TailCPUs: 3.6, RequestsRatio: 1.5}, "", 0},
		{With{TailCPUs: 3.7, RequestsRatio: 1}, TooMuchDemand, 0},
		{With{TailCPUs: 1.8, RequestsRatio: 1}, "", 50},
	} {
		if why, score := r.WhyNot(4, c.with), r.Score(4, c.with); why != c.why || score != c.score {
			t.Errorf("%+v: %q, score %d, want %q, %d", c.with, why, score, c.why, c.score)
		}
	}
}
