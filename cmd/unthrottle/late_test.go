package main

import (
	"strings"
	"testing"
	"time"
)

// Other work is blamed where it had the CPUs, and not where threads of this process waited for each other.
func TestWhyLate(t *testing.T) {
	for name, tc := range map[string]struct {
		ran, waited, busy time.Duration
		others            bool
	}{
		"others":                        {2 * time.Second, 20 * time.Second, 22 * time.Second, true},
		"its own 13 s":                  {13 * time.Second, 14 * time.Second, 17 * time.Second, false},
		"it ran whenever it wanted":     {4 * time.Second, time.Second, 30 * time.Second, false},
		"figures of different moments":  {2 * time.Second, 3 * time.Second, time.Second, false},
		"half of the CPUs, and no more": {10 * time.Second, 11 * time.Second, 20 * time.Second, false},
	} {
		got := whyLate(tc.ran, tc.waited, tc.busy)
		if strings.Contains(got, "other work fills the CPUs") != tc.others || !tc.others && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
