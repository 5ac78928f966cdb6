package accuracy

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// outcome of draw 23: a burner and a sleeper in one cgroup.
func outcome(throttled uint64, used, held, p50, p95 float64) scenario.Outcome {
	return scenario.Outcome{
		Seconds: 10, Cgroups: map[string]scenario.CgroupOutcome{
			"a": {Periods: 500, ThrottledPeriods: throttled, UsageSeconds: 10 * used, ThrottledSeconds: 10 * held}},
		Workloads: map[string]scenario.WorkloadOutcome{
			"a-burn": {}, "a-sleeper": {Latencies: scenario.Latencies{Count: 100, P50: &p50, P95: &p95}}},
	}
}

func TestJudge(t *testing.T) {
	d := draw(t, 23)
	real := []scenario.Outcome{
		outcome(495, 0.498, 0.40, 20, 80), outcome(500, 0.500, 0.44, 20, 84), outcome(500, 0.501, 0.42, 20, 81),
		outcome(500, 0.500, 0.46, 21, 90), outcome(490, 0.499, 0.50, 20, 88),
	}
	for name, c := range map[string]struct {
		simulated scenario.Outcome
		misses    []Figure
	}{
		"the same":                 {outcome(500, 0.500, 0.44, 20, 84), nil},
		"all within a bound":       {outcome(486, 0.509, 0.48, 24, 96), nil},
		"within the range alone":   {outcome(490, 0.500, 0.50, 20, 90), nil},
		"a point below":            {outcome(479, 0.500, 0.44, 20, 84), []Figure{ThrottledPeriods}},
		"too much CPU":             {outcome(500, 0.511, 0.44, 20, 84), []Figure{Use}},
		"throttled for too long":   {outcome(500, 0.500, 0.51, 20, 84), []Figure{ThrottledTime}},
		"sleeps a tick too short":  {outcome(500, 0.500, 0.44, 15.9, 70), []Figure{P50, P95}},
		"a tick for short ones":    {outcome(500, 0.500, 0.44, 16.1, 84), nil},
		"nothing of what is there": {scenario.Outcome{Seconds: 10}, []Figure{ThrottledPeriods, Use, ThrottledTime, P50, P95}},
	} {
		j := judge(d, []scenario.Outcome{c.simulated}, real)
		var got []Figure
		for _, v := range j.misses() {
			got = append(got, v.Figure)
			if j.agrees(v.Figure) {
				t.Errorf("%s: %s agrees and misses", name, v.Figure)
			}
		}
		if !slices.Equal(got, c.misses) {
			t.Errorf("%s: misses %v, want %v", name, got, c.misses)
		}
	}
}

// One real run in five is off: it disagrees with the four others, they agree
// with each other and with it in their range.
func TestSelf(t *testing.T) {
	d := draw(t, 23)
	same := outcome(500, 0.500, 0.44, 20, 84)
	j := judge(d, []scenario.Outcome{same}, []scenario.Outcome{same, same, outcome(450, 0.500, 0.44, 20, 84), same, same})
	if math.Abs(j.Self[ThrottledPeriods]-0.8) > 1e-9 || math.Abs(j.Self[Use]-1) > 1e-9 || math.Abs(j.SelfAll-0.8) > 1e-9 {
		t.Errorf("%v, all %v", j.Self, j.SelfAll)
	}
}

// A figure that nothing was counted for is compared as such.
func TestNothingCounted(t *testing.T) {
	d := draw(t, 23)
	with, without := outcome(500, 0.5, 0.44, 20, 84), outcome(500, 0.5, 0.44, 20, 84)
	without.Workloads = map[string]scenario.WorkloadOutcome{}
	for _, c := range []struct {
		simulated scenario.Outcome
		real      []scenario.Outcome
		agrees    bool
	}{
		{without, []scenario.Outcome{without, without, without}, true},
		{with, []scenario.Outcome{without, without, without}, false},
		{without, []scenario.Outcome{with, with, with}, false},
		{with, []scenario.Outcome{with, without, with}, true},
	} {
		if got := judge(d, []scenario.Outcome{c.simulated}, c.real).agrees(P50); got != c.agrees {
			t.Errorf("agrees: %v", got)
		}
	}
}

func result(seed uint64, d Draw, noise Noise) Result {
	return Result{Seed: seed, Key: d.Key(), Machine: machine, Seconds: 10, Noise: noise, Outcome: outcome(500, 0.5, 0.44, 20, 84)}
}

func aStudy(t *testing.T, draws ...uint64) (*Study, []Draw) {
	s := NewStudy(About{Machine: machine, Release: "6.18\n", Seconds: 10, Repeats: 3, Seeds: 1})
	var all []Draw
	for _, seed := range draws {
		all = append(all, draw(t, seed))
		s.Expect(all[len(all)-1])
	}
	return s, all
}

// Runs of one draw are spread over the study; noisy ones are made again, but not for ever.
func TestNext(t *testing.T) {
	s, draws := aStudy(t, 23, 24)
	var order []uint64
	for {
		d, ok := s.Next(2)
		if !ok {
			break
		}
		order = append(order, d.Seed)
		noise := Noise{}
		if d.Seed == 24 {
			noise.Steal = 0.5
		}
		s.Add(result(d.Seed, d, noise))
	}
	want := []uint64{23, 24, 23, 24, 23, 24, 24, 24, 24}
	if len(order) != len(want) {
		t.Fatalf("%v, want %v", order, want)
	}
	for i := range want {
		if order[i] != want[i] {
			t.Fatalf("%v, want %v", order, want)
		}
	}
	if s.Runs(draws[0]) != 3 || s.Runs(draws[1]) != 6 || s.Progress() != "3 of 6 runs, 6 more were too noisy" {
		t.Error(s.Progress())
	}
}

// What was run otherwise does not count.
func TestAddOthers(t *testing.T) {
	s, draws := aStudy(t, 23)
	r := result(23, draws[0], Noise{})
	for _, change := range []func(*Result){
		func(r *Result) { r.Key = "another rule" }, func(r *Result) { r.Seconds = 5 }, func(r *Result) { r.Machine.Kernel = "6.1" },
		func(r *Result) { r.Noise.Others = 0.031 }, func(r *Result) { r.Noise.Steal = 0.011 },
	} {
		other := r
		change(&other)
		s.Add(other)
	}
	if got := len(s.outcomes(draws[0])); got != 0 {
		t.Errorf("%d runs count", got)
	}
	for range 5 {
		s.Add(r)
	}
	if got := len(s.outcomes(draws[0])); got != 3 {
		t.Errorf("%d runs count, 3 are wanted", got)
	}
}

func TestMarkdown(t *testing.T) {
	s, draws := aStudy(t, 23, 24, 2)
	for range 3 {
		s.Add(result(23, draws[0], Noise{}))
		s.Add(result(2, draws[2], Noise{}))
	}
	page := s.Markdown(func(d Draw) []scenario.Outcome {
		if d.Seed == 2 {
			return []scenario.Outcome{outcome(500, 0.6, 0.44, 20, 84)}
		}
		return []scenario.Outcome{outcome(500, 0.5, 0.44, 20, 84)}
	}, Beside{
		Published: []Claim{{Of: "fibtest", Bound: "493 ms", Came: "490 ms", Met: true},
			{Of: "sleeps", Bound: "90 %", Came: "1 %", Why: "its own CPU"}},
		OnAllCPUs: []AllCPUs{{Release: "6.12", CPUs: 16,
			Rows: []AllCPUsRow{{Scenario: "one", Cgroup: "a", Figure: Use, Simulated: 1, Real: []float64{0.99}}}}},
	})
	rest := page
	for _, want := range []string{
		"2 of 3 randomly drawn scenarios, 3 real runs of 10 s", "6.18 with 2 CPUs at 250 Hz", "6 of 9 runs",
		"Not judged for want of 3 real runs, with how many there are: 24 (0).",
		"| throttled periods | 3 points | 100 % | 90 % | 100 % | met |", "| CPU use | 2 % | 50 % | 90 % | 100 % | **missed** |",
		"| all together |  | 50 % | 70 % | 100 % | **missed** |",
		"## Every miss", "| 2 | CPU use | a | 0.6000 | 0.5000 | 0.5000 to 0.5000 | 0.0100 |",
		"## The lab's kernels", "| 6.12 | 16 | 1 of 1 | one: CPU use of a: simulated 100.0 %, real 99.0 % |",
		"## Against published figures", "| fibtest | 493 ms | 490 ms | met |", "| sleeps | 90 % | 1 % | **missed**: its own CPU |",
	} {
		i := strings.Index(rest, want)
		if i < 0 {
			t.Fatalf("%q is missing in\n%s", want, page)
		}
		rest = rest[i+len(want):]
	}
	empty, _ := aStudy(t, 23)
	if page := empty.Markdown(nil, Beside{}); !strings.Contains(page, "0 of 1 randomly") || strings.Contains(page, "met |") {
		t.Errorf("a page of nothing:\n%s", page)
	}
	if _, ok := empty.Next(1); !ok {
		t.Error("nothing to do")
	}
}
