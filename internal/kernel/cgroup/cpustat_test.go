package cgroup

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseCPUStat(t *testing.T) {
	const text = "nr_periods 3\nnr_throttled 2\nthrottled_usec 5\nnr_marvels many\nnr_bursts 1\nburst_usec 9\nusage_usec 10"
	want := CPUStat{
		Lines: LinePeriods | LineThrottledPeriods | LineThrottled | LineBursts | LineBurstTime | LineUsage, Periods: 3,
		ThrottledPeriods: 2, Bursts: 1,
		Throttled: 5 * time.Microsecond, BurstTime: 9 * time.Microsecond, Usage: 10 * time.Microsecond,
	}
	if got, err := ParseCPUStat([]byte(text)); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseCPUStat([]byte("nr_periods 3\nthrottled_usec 9223372036854776\n")); !errors.Is(err,
		ErrFormat) || got != (CPUStat{}) || !strings.Contains(err.Error(), "throttled_usec") {
		t.Errorf("%+v, %v", got, err)
	}
	bytes := []byte(text)
	if n := testing.AllocsPerRun(100, func() { _, _ = ParseCPUStat(bytes) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParseUsage(t *testing.T) {
	if d, err := ParseUsage([]byte("9223372036854775807\n")); d != math.MaxInt64 || err != nil {
		t.Errorf("cpuacct.usage: %v, %v", d, err)
	}
	for _, text := range []string{"", "\n", "1 2\n", "-1\n", "9223372036854775808\n"} {
		if d, err := ParseUsage([]byte(text)); err == nil || d != 0 {
			t.Errorf("ParseUsage(%q) = %v without error", text, d)
		}
	}
}

func FuzzParseUsage(f *testing.F) {
	f.Add([]byte("123\n"))
	f.Add([]byte("9223372036854775808"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, err := ParseUsage(text); d < 0 || err != nil && d != 0 {
			t.Errorf("%v, %v", d, err)
		}
	})
}
