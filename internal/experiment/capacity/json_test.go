package capacity

import (
	"encoding/json"
	"testing"
)

// The keys that others read. A figure that was not measured is null.
func TestJSONIsTheContract(t *testing.T) {
	text, err := json.Marshal(Result{Remedies: []Remedy{{Points: []Point{{}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Remedies []map[string]any `json:"remedies"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	remedy := r.Remedies[0]
	for _, key := range []string{"max_load_rps", "ratio", "ratio_low", "ratio_high", "cpus_granted"} {
		if v, ok := remedy[key]; !ok || v != nil {
			t.Errorf("%s: %v, want null", key, v)
		}
	}
	if remedy["noisy"] != false {
		t.Errorf("noisy: %v", remedy["noisy"])
	}
	point := remedy["points"].([]any)[0].(map[string]any)
	for _, key := range []string{"p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "cpu_used", "throttled_periods",
		"stopped_low", "stopped_high", "context_switches_per_second"} {
		if v, ok := point[key]; !ok || v != nil {
			t.Errorf("%s: %v, want null", key, v)
		}
	}
}
