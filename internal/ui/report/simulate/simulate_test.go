package simulate

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/scenariorun"
)

func simulation(t *testing.T, name string, seeds int) Simulation {
	t.Helper()
	data, err := os.ReadFile("../../../../examples/scenarios/" + name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(name, data)
	if err != nil {
		t.Fatal(err)
	}
	since := s.Host.Rules.Since
	era := since.Letter()
	out := Simulation{Rules: since, Run: scenariorun.Run{Scenario: name, About: s.About, Simulated: true,
		Kernel: s.Host.Rules.Kernel, Era: &era, CPUs: s.Host.CPUs, HZ: &s.Host.HZ, Seed: 1}}
	var runs []scenario.Outcome
	for i := range seeds {
		r, err := simulate.Run(s, simulate.Options{Seed: uint64(i + 1), Timeline: 2, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r.Outcome)
		out.Timeline, out.Explain = r.Timeline, r.Explain
	}
	out.Summarize(runs)
	return out
}

func TestWrite(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, simulation(t, "conceptual.yaml", 1), page.Style{ASCII: true, Width: 120}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Simulated: 1 CPU, Linux 5.15 (bandwidth rules of 5.14), continuous accounting, 1 s, 1 seed from 1.\n",
		"     app          4          5        6        0.240      0.240      0.200       1\n",
		"   request      1  440.00  440.00  440.00  440.00        0           0      0.200\n",
		"        0 ms  " + strings.Repeat("9", 20) + strings.Repeat("x", 30) + "\n",
		" 40.000000   0.000000    0.000000  CPU 0 is throttled: it has nothing left, nor has the pool\n",
		"100.000000   0.000000              the period ends, counted as throttled: 1 CPU waiting\n",
		"100.000000  39.999999    0.000001  CPU 0, next in the queue, gets 1 ns, 1 ns above its debt\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestSpread(t *testing.T) {
	s := simulation(t, "fibtest-affected.yaml", 3)
	var b bytes.Buffer
	if err := Write(&b, s, page.Style{Width: 120}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "Figures are medians") || !strings.Contains(b.String(), "(313") {
		t.Errorf("no spread in\n%s", b.String())
	}
	if low, mid, high := s.Lowest.Cgroups["fibtest"], s.Cgroups["fibtest"],
		s.Highest.Cgroups["fibtest"]; low.UsageSeconds >= mid.UsageSeconds || mid.UsageSeconds >= high.UsageSeconds {
		t.Errorf("usage %v, %v, %v", low.UsageSeconds, mid.UsageSeconds, high.UsageSeconds)
	}
}

// The contract of simulate --json: what was not counted is null.
func TestJSON(t *testing.T) {
	text, err := json.Marshal(simulation(t, "cgroup-lat-cpuset.yaml", 1))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cgroups map[string]struct {
			Periods   *int `json:"periods"`
			Active    *int `json:"active_periods"`
			Throttled *int `json:"throttled_periods"`
			Width     []struct {
				CPUs    *int     `json:"cpus"`
				Seconds *float64 `json:"seconds"`
			} `json:"width"`
		} `json:"cgroups"`
		Workloads map[string]map[string]*float64 `json:"workloads"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	lat, ok := got.Cgroups["lat"]
	if !ok || lat.Periods == nil || lat.Active == nil || lat.Throttled == nil || len(lat.Width) == 0 || lat.Width[0].CPUs == nil {
		t.Errorf("%s", text)
	}
	for _, key := range []string{"p50_ms", "p90_ms", "p99_ms", "max_ms"} {
		if v, ok := got.Workloads["burners"][key]; !ok || v != nil {
			t.Errorf("%s of threads that measure nothing: %v", key, v)
		}
		if v := got.Workloads["sleeper"][key]; v == nil || *v < 10 {
			t.Errorf("%s of the sleeper: %v", key, v)
		}
	}
}
