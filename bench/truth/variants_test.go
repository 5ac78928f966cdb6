package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/cure/fix"

	"github.com/unthrottle/unthrottle/internal/fleet/recorded"
)

const forecastRows = `[
 {"remedy":"none","parameters":{},"judged_ms":50,"cpus_reserved":0.5},
 {"remedy":"pin","parameters":{"cpus":1},"judged_ms":4,"cpus_reserved":1,"judged_error_ms":{"low":3,"high":6}},
 {"remedy":"narrow","parameters":{},"cpus_reserved":0.5},
 {"remedy":"burst","parameters":{"burst_ms":50},"cpus_reserved":0.5,"judged_error_ms":{"low":40,"high":60}},
 {"remedy":"burst","parameters":{"burst_seconds":0.01,"period_seconds":0.02},"cpus_reserved":0.5,"judged_error_ms":{"low":9,"high":20}},
 {"remedy":"period","parameters":{"period_seconds":0.01},"cpus_reserved":0.5},
 {"remedy":"weight","parameters":{},"cpus_reserved":null},
 {"remedy":"raise","parameters":{"factor":1.5},"cpus_reserved":0.75,"refused":"no room"},
 {"remedy":"pools","parameters":{"threads":2},"modelled":true},
 {"remedy":"pin","parameters":{"cpus":1},"host_load":0.9,"cpus_reserved":1}
]`

func rowsOf(t *testing.T) (rows []row) {
	t.Helper()
	if err := json.Unmarshal([]byte(forecastRows), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestVariants(t *testing.T) {
	var got []string
	for _, v := range variantsOf(rowsOf(t)) {
		got = append(got, v.Name+": "+strings.Join(v.Args, " ")+v.Refused)
	}
	want := []string{
		"leave it: ", "pin 1: --remedy pin --cpus 1", "narrow: --remedy narrow", "burst 50ms: --remedy burst --burst 50ms",
		"burst 10ms, period 20ms: --remedy burst --burst 10ms --period 20ms", "period 10ms: --remedy period --period 10ms", "weight: --remedy weight", "raise 1.5x: --remedy raise --factor 1.5no room",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if r := rowOf(rowsOf(t), "pin 1"); r == nil || r.HostLoad != nil {
		t.Errorf("row of pin: %+v", r)
	}
}

// The tries of fix name the remedy; the interval that they expected tells which row it was.
func TestOutcome(t *testing.T) {
	var f fixJSON
	text := `{"verdict":"better","rows":` + forecastRows + `,"chosen":{"answer":"remedy","row":1},"tries":[
	 {"remedy":"burst","verdict":"no change","kept":false,"expected":{"pool_p99_ms_low":9}},
	 {"remedy":"pin","verdict":"better","kept":true,"expected":{"pool_p99_ms_low":3}}]}`
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	if r := f.outcome(); r.Chosen != "burst 10ms, period 20ms" || r.Left != "pin 1" || !r.Applied || len(r.Tries) != 2 || r.Tries[0].Kept {
		t.Errorf("%+v", r)
	}
	f.Tries[0].Expected.Pool, f.Tries[0].Expected.Requests = nil, new(9.0)
	if r := f.outcome(); r.Chosen != "burst 10ms, period 20ms" {
		t.Errorf("by requests: %+v", r)
	}
	f.Tries, f.Chosen = nil, &recommended{Answer: "more-cpu", Row: new(6)}
	if r := f.outcome(); r.Chosen != "weight" || r.Applied || r.Answer != "more-cpu" || r.Left != "" {
		t.Errorf("%+v", r)
	}
	f.Chosen = nil
	if r := f.outcome(); r.Chosen != "" || r.Answer != "" || r.Verdict != "better" {
		t.Errorf("%+v", r)
	}
	// A trial names which of several bursts it kept.
	f = fixJSON{Rows: []row{{Remedy: "burst", Parameters: map[string]any{"burst_ms": 50.0}}, {Remedy: "burst", Parameters: map[string]any{"burst_ms": 10.0, "period_ms": 20.0}}},
		Trial: &fix.Trial{Rows: []fix.TrialRow{{Name: "burst 50ms"}, {Name: "burst 10ms, period 20ms", Kept: true}}}}
	f.Tries = append(f.Tries, struct {
		try
		Expected *struct {
			Pool     *float64 `json:"pool_p99_ms_low"`
			Requests *float64 `json:"requests_p99_ms_low"`
		} `json:"expected"`
	}{try: try{Remedy: "burst", Kept: true}})
	if r := f.outcome(); r.Left != "burst 10ms, period 20ms" || r.Chosen != r.Left {
		t.Errorf("%+v", r)
	}
}

func TestMissing(t *testing.T) {
	c := testCase{needs: []need{{"no-such-program", "some-package"}, {"sh", "dash"}, {"nor-this", "other"}}}
	if got := c.missing(); got != "no-such-program, nor-this are not installed: apt-get install some-package other" {
		t.Error(got)
	}
	if got := (testCase{needs: []need{{"sh", "dash"}}}).missing(); got != "" {
		t.Error(got)
	}
}

func TestCases(t *testing.T) {
	names := map[string]bool{}
	for _, c := range cases() {
		if names[c.name] || c.name == "" || c.truth == "" || c.limit <= 0 || c.start == nil || len(c.needs) == 0 {
			t.Errorf("case %q is not whole, or twice there", c.name)
		}
		names[c.name] = true
		if c.healthy != (len(c.causes) == 0) || c.healthy && len(c.guilty)+len(c.suffers) > 0 {
			t.Errorf("case %q: healthy %v, causes %q", c.name, c.healthy, c.causes)
		}
		// The name of a cgroup beside the service has the name of the case in it.
		beside := slices.Contains(c.causes, "ancestor") || slices.Contains(c.causes, "neighbours")
		if beside && slices.ContainsFunc(c.guilty, func(part string) bool { return strings.Contains(c.name, part) }) {
			t.Errorf("case %q: %q is in the names of the service's own cgroups too", c.name, c.guilty)
		}
	}
	if _, err := choose("redis-bgsave,nothing"); err == nil || !strings.Contains(err.Error(), "choose from redis-bgsave") {
		t.Error(err)
	}
}

// Each case whose demand is recorded is one, with a kind of its own, and no pod's container.
func TestDemanded(t *testing.T) {
	kinds := map[string]bool{}
	for name, kind := range demanded {
		i := slices.IndexFunc(cases(), func(c testCase) bool { return c.name == name })
		if i < 0 || cases()[i].pod || kinds[kind] || kind == "" {
			t.Errorf("%s, %q: no case, a pod, or a kind that another has", name, kind)
		}
		kinds[kind] = true
	}
}

func TestDemandBesideWhatWasCounted(t *testing.T) {
	even := func(n int, work int64) recorded.Service {
		s := recorded.Service{PeriodUS: 100_000, RecordedCPUs: 2}
		for range n {
			s.WorkUS, s.Width = append(s.WorkUS, work), append(s.Width, 2)
		}
		return s
	}
	good, early := even(200, 50_000), even(200, 50_000)
	for i := 150; i < 200; i++ {
		early.WorkUS[i] = 0
	}
	for what, c := range map[string]struct {
		s       recorded.Service
		counted oneRun
		fine    bool
	}{
		"equal":     {good, oneRun{UsedCPUs: 0.5, Periods: 200}, true},
		"near":      {good, oneRun{UsedCPUs: 0.55, Periods: 200}, true},
		"half":      {good, oneRun{UsedCPUs: 1, Periods: 200}, false},
		"full host": {good, oneRun{UsedCPUs: 0.5, OthersCPUs: 1.4, Periods: 200}, false},
		"throttled": {good, oneRun{UsedCPUs: 0.5, Periods: 200, Throttled: 1}, false},
		"runs out":  {early, oneRun{UsedCPUs: 0.375, Periods: 200}, false},
	} {
		if err := checkDemand(&c.s, c.counted); (err == nil) != c.fine {
			t.Errorf("%s: %v", what, err)
		}
	}
}
