package forecast

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Another time may lack the one block with slow responses.
func TestRangeOfOtherTimes(t *testing.T) {
	in, answers := make([]int, blocks), []answer{}
	for i := range 600 {
		a := answer{i / 50, 20 * ms}
		if i/50 == 3 && i%5 < 2 {
			a.took = 300 * ms
		}
		in[a.block]++
		answers = append(answers, a)
	}
	slowestFirst(answers)
	if r := otherTimes(in, answers, 0.99); r.Low != 20 || r.High != 300 {
		t.Errorf("%+v", *r)
	}
	if r := otherTimes(in, nil, 0.99); r != nil {
		t.Errorf("of no responses %+v", *r)
	}
}

// One of two runs has slow responses in all its blocks, as with another phase of the period: another time is like the
// one or the other.
func TestOtherTimesHaveOtherPhases(t *testing.T) {
	l := &Load{window: 6 * time.Second, Pools: []*Pool{{Name: "server", workloads: []int{0}}, {Name: "timer", workloads: []int{1}}}}
	var results []result
	for run := range 2 {
		add, done := l.slowestBy()
		for i := range 1200 {
			took := 10 * ms
			if run == 1 && i%100 < 2 {
				took = 90 * ms
			}
			add(0, time.Duration(i)*5*ms, took)
			add(1, time.Duration(i)*5*ms, time.Hour)
			add(2, 0, time.Hour) // a neighbour's
		}
		results = append(results, result{slowest: done()})
	}
	if n := len(results[0].slowest[0].all); n != 150 || results[0].slowest[0].in[11] != 100 {
		t.Errorf("%d responses are kept, %v came by block", n, results[0].slowest[0].in)
	}
	for name, test := range map[string]struct {
		pool string
		q    float64
		want *Range
	}{
		"both phases":   {"server", 0.99, &Range{10, 90}},
		"the longest":   {"server", 1, &Range{10, 90}},
		"another pool":  {"timer", 0.99, &Range{3.6e6, 3.6e6}},
		"too low":       {"server", 0.9, nil},
		"all pools":     {"", 0.99, nil},
		"none of these": {"client", 0.99, nil},
	} {
		got := l.otherTimesOf(results, test.pool, test.q)
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// Whatever the responses are, the range is between two of them; it is one value where all are alike; and it grows with
// them.
func TestOtherTimesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := rapid.SliceOfN(rapid.IntRange(1, 1000), 1, 400).Draw(t, "ms")
		q := rapid.SampledFrom([]float64{0.95, 0.99, 1}).Draw(t, "quantile")
		runs, factor := rapid.IntRange(1, 5).Draw(t, "runs"), rapid.IntRange(2, 5).Draw(t, "factor")
		made := func(times func(i int) time.Duration) *Range {
			in, answers := make([]int, runs*blocks), []answer{}
			for i := range took {
				a := answer{i * 7 % len(in), times(i)}
				in[a.block]++
				answers = append(answers, a)
			}
			slowestFirst(answers)
			return otherTimes(in, answers, q)
		}
		r := made(func(i int) time.Duration { return time.Duration(took[i]) * ms })
		if r == nil {
			return // no draw had a response
		}
		if r.Low > r.High || !slices.Contains(took, int(r.Low)) || !slices.Contains(took, int(r.High)) {
			t.Fatalf("%+v of %v", *r, took)
		}
		if same := made(func(int) time.Duration { return 7 * ms }); *same != (Range{7, 7}) {
			t.Fatalf("all alike: %+v", *same)
		}
		if large := made(func(i int) time.Duration { return time.Duration(took[i]*factor) * ms }); *large != (Range{
			r.Low * float64(factor), r.High * float64(factor)}) {
			t.Fatalf("%+v, and %d times as long %+v", *r, factor, *large)
		}
	})
}

// The block of a moment lies within the recording, whatever the moment is.
func TestBlockAt(t *testing.T) {
	l := &Load{window: 6 * time.Second}
	for at, want := range map[time.Duration]int{-time.Hour: 0, 0: 0, 499 * ms: 0, 500 * ms: 1, 6*time.Second - 1: 11,
		6 * time.Second: 11, time.Hour: 11} {
		if got := l.blockAt(at); got != want {
			t.Errorf("%v: block %d, want %d", at, got, want)
		}
	}
}

// Of very many responses a part is kept, with the same quantiles; a small pool beside them keeps all of its slowest.
func TestSlowestOfVeryManyAreThinned(t *testing.T) {
	l := &Load{window: 6 * time.Second, Pools: []*Pool{{Name: "server", workloads: []int{0}}, {Name: "timer", workloads: []int{1}}}}
	add, done := l.slowestBy()
	const many = 3 * mostAnswers
	for i := range many {
		at := time.Duration(i) * 6 * time.Second / many
		took := 10 * ms
		if i%97 < 3 { // 3 %, with no common divisor with the thinning
			took = 90 * ms
		}
		add(0, at, took)
		if i%(many/500) == 0 {
			add(1, at, time.Duration(i)*time.Microsecond)
		}
	}
	found := done()
	if n := len(found[0].all); n > mostAnswers/8+1 || n < mostAnswers/32 {
		t.Errorf("%d responses are kept", n)
	}
	if n := len(found[1].all); n != leastSlow || found[1].in[0] != 42 {
		t.Errorf("%d responses of the small pool are kept, %v by block", n, found[1].in)
	}
	for q, want := range map[float64]float64{0.96: 10, 0.98: 90} {
		if r := l.otherTimesOf([]result{{slowest: found}}, "server", q); r == nil || r.Low != want || r.High != want {
			t.Errorf("quantile %g: %+v, want %g", q, r, want)
		}
	}
}
