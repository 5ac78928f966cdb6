package scenario

import (
	"testing"
	"time"
)

func TestWakeAfter(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	three := []Phase{{For: s, Factor: 1}, {For: s, Factor: 0}, {For: s, Factor: 4}}
	for _, test := range []struct {
		phases          []Phase
		at, sleep, want time.Duration // -1: never
	}{
		{nil, s, 100 * ms, s + 100*ms},
		{three, 0, 100 * ms, 100 * ms},
		{three, 950 * ms, 100 * ms, 1050 * ms},          // a sleep keeps the phase that it began in
		{three, 1500 * ms, 100 * ms, 2025 * ms},         // to the end of the phase without load, and a sleep of the next
		{three, 2 * s, 100 * ms, 2025 * ms},             //
		{three, 5 * s, 100 * ms, 5025 * ms},             // the last one goes on
		{three[:2], 1500 * ms, ms, -1},                  // and has no load
		{three[1:2], 0, ms, -1},                         //
		{[]Phase{{s, 1e-13}}, s, ms, s + 2*MaxDuration}, // bounded: no overflow
	} {
		got, wakes := WakeAfter(test.phases, test.at, test.sleep)
		if !wakes {
			got = -1
		}
		if got != test.want {
			t.Errorf("a sleep of %v at %v in %v ends at %v, want %v", test.sleep, test.at, test.phases, got, test.want)
		}
	}
}
