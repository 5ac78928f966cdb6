package accuracy

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
)

var machine = agreement.Machine{CPUs: 2, HZ: 250, Kernel: "6.18", CgroupVersion: 1}

func draw(t *testing.T, seed uint64) agreement.Draw {
	t.Helper()
	d, err := agreement.New(seed, machine)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// outcome of a burner and a sleeper in one cgroup, by the CPUs used.
func outcome(used float64) scenario.Outcome {
	p50, p95 := 20.0, 84.0
	return scenario.Outcome{
		Seconds: 10,
		Cgroups: map[string]scenario.CgroupOutcome{
			"a": {Periods: 500, ThrottledPeriods: 500, UsageSeconds: 10 * used, ThrottledSeconds: 4.4}},
		Workloads: map[string]scenario.WorkloadOutcome{"a-sleeper": {Latencies: scenario.Latencies{Count: 100, P50: &p50, P95: &p95}}},
	}
}

func result(seed uint64, d agreement.Draw, noise agreement.Noise) agreement.Result {
	return agreement.Result{Seed: seed, Key: d.Key(), Machine: machine, Seconds: 10, Noise: noise, Outcome: outcome(0.5)}
}

func aStudy(t *testing.T, draws ...uint64) (*Study, []agreement.Draw) {
	s := NewStudy(About{Machine: machine, Release: "6.18\n", Seconds: 10, Repeats: 3, Seeds: 1})
	var all []agreement.Draw
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
		noise := agreement.Noise{}
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
	r := result(23, draws[0], agreement.Noise{})
	for _, change := range []func(*agreement.Result){
		func(r *agreement.Result) { r.Key = "another rule" }, func(r *agreement.Result) { r.Seconds = 5 }, func(r *agreement.Result) { r.Machine.Kernel = "6.1" },
		func(r *agreement.Result) { r.Noise.Others = 0.031 }, func(r *agreement.Result) { r.Noise.Steal = 0.011 },
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
		s.Add(result(23, draws[0], agreement.Noise{}))
		s.Add(result(2, draws[2], agreement.Noise{}))
	}
	page := s.Markdown(func(d agreement.Draw) []scenario.Outcome {
		if d.Seed == 2 {
			return []scenario.Outcome{outcome(0.6)}
		}
		return []scenario.Outcome{outcome(0.5)}
	}, Beside{
		Published: []Claim{{Of: "fibtest", Bound: "493 ms", Came: "490 ms", Met: true},
			{Of: "sleeps", Bound: "90 %", Came: "1 %", Why: "its own CPU"}},
		OnAllCPUs: []agreement.AllCPUs{{Release: "6.12", CPUs: 16,
			Rows: []agreement.AllCPUsRow{{Scenario: "one", Cgroup: "a", Figure: agreement.Use, Simulated: 1, Real: []float64{0.99}}}}},
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
