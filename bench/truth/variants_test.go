package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand/recorded"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

const forecastRows = `[
 {"remedy":"none","parameters":{},"judged_ms":50,"cpus_reserved":0.5},
 {"remedy":"pin","parameters":{"cpus":1},"judged_ms":4,"cpus_reserved":1,"judged_error_ms":{"low":3,"high":6}},
 {"remedy":"narrow","parameters":{},"cpus_reserved":0.5},
 {"remedy":"burst","parameters":{"burst_seconds":0.05},"cpus_reserved":0.5,"judged_error_ms":{"low":40,"high":60}},
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
		"burst 10ms, period 20ms: --remedy burst --burst 10ms --period 20ms",
		"period 10ms: --remedy period --period 10ms", "weight: --remedy weight", "raise 1.5x: --remedy raise --factor 1.5no room",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if r := rowOf(rowsOf(t), "pin 1"); r == nil || r.HostLoad != nil {
		t.Errorf("row of pin: %+v", r)
	}
}

// Every remedy that forecasts have is applied as its row says: each parameter is a flag.
func TestParametersOfRemediesAreFlags(t *testing.T) {
	quota := bandwidth.Limit{Quota: 150 * time.Millisecond, Period: 100 * time.Millisecond}
	for _, of := range remedy.All() {
		for _, e := range of.Effects {
			for _, r := range e.Rows(forecast.Container{Limit: 1.5, Quota: quota, CPUs: 2}) {
				told := row{Remedy: r.Name, Parameters: r.Parameters()}
				name, args := told.applied()
				if len(args) != 2+2*len(told.Parameters) {
					t.Errorf("%s %v is applied as %q: a parameter is not in flags", name, told.Parameters, args)
				}
				for i := 2; i < len(args); i += 2 {
					if !of.Has(strings.TrimPrefix(args[i], "--")) {
						t.Errorf("%s has no %s", name, args[i])
					}
				}
			}
		}
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
	if r := f.outcome(); r.Chosen != "burst 10ms, period 20ms" || r.Left != "pin 1" || !r.Applied {
		t.Errorf("%+v", r)
	}
	f.Tries[0].Expected.PoolP99MsLow, f.Tries[0].Expected.RequestsP99MsLow = nil, new(9.0)
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
	f = fixJSON{Rows: []row{{Remedy: "burst", Parameters: map[string]any{"burst_seconds": 0.05}},
		{Remedy: "burst", Parameters: map[string]any{"burst_seconds": 0.01, "period_seconds": 0.02}}},
		Result: fix.Result{Trial: &fix.Trial{Kept: new("burst 10ms, period 20ms")}, Tries: []fix.Try{{Remedy: "burst", Kept: true}}}}
	if r := f.outcome(); r.Left != "burst 10ms, period 20ms" || r.Chosen != r.Left {
		t.Errorf("%+v", r)
	}
}

// A cap that was kept is measured beside the forecast's rows.
func TestCaps(t *testing.T) {
	f := fixed{Trial: &fix.Trial{Rows: []fix.TrialRow{{Name: "left as it is", Remedy: "none"},
		{Name: "cap sidecar at 0.7", Remedy: "cap", Parameters: map[string]string{"sibling": "/pod/sidecar", "to": "0.7"}, Kept: true}}}}
	if got := f.caps(0.8); len(got) != 1 || strings.Join(got[0].Args, " ") != "--remedy cap --to 0.7" || *got[0].Granted != 0.8 {
		t.Errorf("%+v", got)
	}
	f.Trial.Rows[1].Kept = false
	if got := f.caps(0.8); got != nil {
		t.Errorf("not kept: %+v", got)
	}
	if got := new(fixed).caps(0.8); got != nil {
		t.Errorf("no trial: %+v", got)
	}
}

func TestChoose(t *testing.T) {
	if _, err := choose("redis-bgsave,nothing"); err == nil || !strings.Contains(err.Error(), "choose from redis-bgsave") {
		t.Error(err)
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
