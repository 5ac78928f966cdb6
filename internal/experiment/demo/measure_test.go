package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/workload"
)

func sample(at time.Duration, periods, throttled uint64, used time.Duration) counters {
	return counters{at: at, stat: cgroup.Stat{
		Bandwidth: true, Periods: periods, ThrottledPeriods: throttled, Throttled: time.Duration(throttled) * 50 * tms, Usage: &used,
	}, host: map[int]procfs.Times{0: {All: used + at/4}, 1: {All: at / 10, Steal: at / 10}}}
}

func exampleWindow() window {
	return window{quota: true, begin: sample(time.Second, 5, 5, time.Second), end: sample(3*time.Second, 25, 23, 3*time.Second),
		records: []workload.Record{
			{Start: 1000 * tms, Took: 12 * tms, Work: 100}, {Start: 1100 * tms, Took: 160 * tms, Work: 200},
			{Start: 2000 * tms, Took: 12 * tms, Work: 1100},
		}}
}

func TestFigures(t *testing.T) {
	a := exampleWindow().figures(Variant{Name: "quota"})
	if *a.Periods != 20 || *a.ThrottledPeriods != 18 || *a.ThrottledSeconds != 0.9 || *a.UsedCPUs != 1 || *a.CPUSeconds != 2 {
		t.Errorf("counters: %+v", a)
	}
	if *a.OtherCPUs != 0.25 || *a.StolenCPUs != 0.1 || *a.WorkPerSecond != 1000 {
		t.Errorf("others %v, stolen %v, work %v", *a.OtherCPUs, *a.StolenCPUs, *a.WorkPerSecond)
	}
	if *a.P50 != 12 || *a.P99 != 160 || *a.Max != 160 || *a.Late != 0.154 || a.Sleeps != 3 {
		t.Errorf("sleeps: %v %v %v %v %d", *a.P50, *a.P99, *a.Max, *a.Late, a.Sleeps)
	}
}

// What was not measured is null, never 0.
func TestFiguresNotMeasured(t *testing.T) {
	w := exampleWindow()
	w.quota, w.records = false, nil
	w.begin.stat.Usage, w.end.host = nil, nil
	a := w.figures(Variant{})
	if a.ThrottledPeriods != nil || a.ThrottledSeconds != nil || a.CPUSeconds != nil || a.UsedCPUs != nil || a.OtherCPUs != nil ||
		a.P50 != nil || a.P99 != nil || a.Max != nil || a.Late != nil || a.WorkPerSecond != nil {
		t.Errorf("invented: %+v", a)
	}
	b, err := json.Marshal(Result{After: a})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"throttled_periods", "cpu_seconds", "p50_ms", "p99_ms", "max_ms"} {
		if !strings.Contains(string(b), `"`+key+`":null`) {
			t.Errorf("%s is not null in %s", key, b)
		}
	}
}

func TestResultIsTheContract(t *testing.T) {
	var r Result
	variants := []*Variant{&r.Before, &r.Threads, &r.CPUSet, &r.After}
	ws := []window{exampleWindow(), exampleWindow(), exampleWindow(), {records: []workload.Record{{Start: 0, Took: 390 * tms}}}}
	for i := range variants {
		*variants[i] = ws[i].figures(Variant{})
	}
	fillHistograms(variants, ws, 10*tms)
	r.Restored = true
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got["restored"] != true {
		t.Error("restored is not true")
	}
	for _, variant := range []string{"before", "threads", "cpuset", "after"} {
		a := got[variant].(map[string]any)
		for _, key := range []string{"periods", "throttled_periods", "cpu_seconds", "p50_ms", "p99_ms", "max_ms", "histogram"} {
			if _, ok := a[key]; !ok {
				t.Errorf("%s lacks %s", variant, key)
			}
		}
		last := a["histogram"].([]any)[len(a["histogram"].([]any))-1].(map[string]any)
		if len(a["histogram"].([]any)) != 8 || last["to_ms"] != 400.0 || last["from_ms"] != 350.0 {
			t.Errorf("%s: %v: the longest sleep of any variant decides the bins of all", variant, a["histogram"])
		}
	}
}

func TestVerdict(t *testing.T) {
	variant := func(p99, used float64, throttled uint64) Variant {
		return Variant{Name: "x", P99: &p99, UsedCPUs: &used, Periods: ptr(uint64(65)), ThrottledPeriods: &throttled,
			OtherCPUs: ptr(1.2), StolenCPUs: ptr(0.0)}
	}
	for name, c := range map[string]struct {
		before, after Variant
		ratio         float64
		same          bool
		want          []string
	}{
		"better": {variant(192, 1, 65), variant(14, 0.99, 0), 13.714, true, []string{
			"With pin, p99 of the 10 ms sleep is 14.0 ms instead of 192.0 ms: 13.7x lower, at the same CPU used (0.99 and 1.00 CPUs)."}},
		"same": {variant(14, 1, 65), variant(14, 1, 0), 1, true, []string{"Pin changed nothing here"}},
		"worse, on a busy host": {variant(20, 0.53, 3), variant(60, 0.5, 0), 0.333, false, []string{
			"Pin made it worse here", "only 3 of 65 periods", "got 0.50 of 1 CPUs: others used 1.20 CPUs"}},
		"less CPU": {variant(192, 1, 65), variant(30, 0.8, 0), 6.4, false,
			[]string{"but at other CPU used (0.80 instead of 1.00 CPUs)", "In variant x"}},
	} {
		v := judge(Result{Quota: 1, Before: c.before, After: c.after})
		if *v.P99Ratio != c.ratio || v.SameCPU != c.same || len(v.Text) != len(c.want) {
			t.Errorf("%s: ratio %v, same %v, %q", name, *v.P99Ratio, v.SameCPU, v.Text)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(v.Text[i], want) {
				t.Errorf("%s: %q lacks %q", name, v.Text[i], want)
			}
		}
	}
	if v := judge(Result{}); v.P99Ratio != nil || v.SameCPU || !strings.Contains(v.Text[0], "No verdict") {
		t.Errorf("nothing measured: %+v", v)
	}
}
