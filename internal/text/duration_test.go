package text

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0 ms": 0, "<0.01 ms": 3 * time.Microsecond, "0.25 ms": 250 * time.Microsecond, "9.5 ms": 9500 * time.Microsecond,
		"81 ms": 81 * time.Millisecond, "1 s": time.Second, "2.31 s": 2310 * time.Millisecond, "45.2 s": 45200 * time.Millisecond,
		"90 s": 90 * time.Second, "2 min": 119970 * time.Millisecond, "2 min 5 s": 125 * time.Second,
		"1 h":       59*time.Minute + 59900*time.Millisecond,
		"1 h 3 min": 63 * time.Minute, "3 d 4 h": 76 * time.Hour, "-81 ms": -81 * time.Millisecond,
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestExactDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0 ms": 0, "1 ns": 1, "5 ms": 5 * time.Millisecond, "200 us": 200 * time.Microsecond, "12.5 us": 12500,
		"1.5 s":  1500 * time.Millisecond,
		"100 ms": 100 * time.Millisecond, "4.999999 ms": 4999999,
	} {
		if got := ExactDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestPerSecond(t *testing.T) {
	for want, of := range map[string][2]float64{
		"81-240 ms/s": {0.081, 0.24}, "0 ms/s": {0, 0}, "0-0.4 ms/s": {0, 0.0004}, "<0.1 ms/s": {0.00001, 0.00002}, "1000 ms/s": {1, 1},
	} {
		if got := PerSecond(of[0], of[1]); got != want {
			t.Errorf("%v: %q, want %q", of, got, want)
		}
	}
}
