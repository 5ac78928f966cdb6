package policy

import (
	"strings"
	"testing"
)

func TestFlight(t *testing.T) {
	for text, want := range map[string]Flight{
		"version: 1":                         DefaultFlight(),
		"version: 1\nflight: {probe: false}": {Probe: false, RecordAbove: 0.1},
		"version: 1\nflight: {probe: true, record_above: 25%}": {Probe: true, RecordAbove: 0.25},
	} {
		r, err := ParseRules([]byte(text))
		if err != nil || r.Flight != want {
			t.Errorf("%q: %+v, %v", text, r.Flight, err)
		}
	}
	for text, want := range map[string]string{
		"version: 1\nflight: {probe: maybe}":        "line 2",
		"version: 1\nflight: {record_above: 2}":     "line 2",
		"version: 1\nflight:\n  recordabove: 10%\n": "line 3",
	} {
		if _, err := ParseRules([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
