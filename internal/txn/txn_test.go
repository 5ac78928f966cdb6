package txn

import (
	"encoding/json"
	"maps"
	"testing"
)

// Programs read numbers and switches as such; a list of CPUs is text, also where it has one.
func TestParametersInJSON(t *testing.T) {
	text, err := json.Marshal(InForce{Parameters: map[string]string{"lends": "yes", "irqs": "yes", "stays": "yes", "asked": "yes",
		"to": "1.5", "limit": "2.5", "cpus": "2", "cores": "full"}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Parameters map[string]any `json:"parameters"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"lends": true, "irqs": true, "stays": true, "asked": true, "to": 1.5, "limit": 2.5, "cpus": "2", "cores": "full"}
	if !maps.Equal(got.Parameters, want) {
		t.Errorf("%v, want %v", got.Parameters, want)
	}
}
