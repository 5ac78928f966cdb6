package observe

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	tests := []struct {
		name, text string
		want       Counters
		bad        bool
	}{
		{name: "v1", text: "nr_periods 30\nnr_throttled 3\nthrottled_time 1000000\nnr_bursts 0\nburst_time 0\n",
			want: Counters{HasBandwidth: true, Periods: 30, ThrottledPeriods: 3, Throttled: ms}},
		{name: "v2", text: "usage_usec 7\nuser_usec 3\nsystem_usec 4\nnr_periods 30\nnr_throttled 3\nthrottled_usec " +
			"1000\nnr_bursts 0\nburst_usec 0\n",
			want: Counters{HasBandwidth: true, Periods: 30, ThrottledPeriods: 3, Throttled: ms, HasUsage: true,
				Usage: 7 * time.Microsecond}},
		{name: "v2 without the controller", text: "usage_usec 7\nuser_usec 3\nsystem_usec 4\n",
			want: Counters{HasUsage: true, Usage: 7 * time.Microsecond}},
		{name: "empty", text: ""},
		{name: "cut off", text: "nr_periods 30\nnr_throttled 3", want: Counters{Periods: 30, ThrottledPeriods: 3}},
		{name: "a line of the future", text: "nr_marvels many -7\n\nnr_periods 1\n", want: Counters{Periods: 1}},
		{name: "the kernel's int has run over", text: "nr_periods -2147483648\nnr_throttled -1\n",
			want: Counters{Periods: 1 << 31, ThrottledPeriods: 1<<32 - 1}},
		{name: "no number", text: "nr_periods x\n", bad: true},
		{name: "nothing", text: "nr_throttled \n", bad: true},
		{name: "negative time", text: "throttled_time -1\n", bad: true},
		{name: "negative beyond an int", text: "nr_periods -2147483649\n", bad: true},
		{name: "minus nothing", text: "nr_periods -\n", bad: true},
		{name: "beyond 64 bits", text: "nr_periods 18446744073709551616\n", bad: true},
		{name: "beyond 292 years", text: "throttled_usec 9223372036854776\n", bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseCounters([]byte(tt.text))
			if (err != nil) != tt.bad || got != tt.want {
				t.Errorf("parseCounters(%q) = %+v, %v; want %+v", tt.text, got, err, tt.want)
			}
		})
	}
}

func TestParseLocal(t *testing.T) {
	if d, err := parseLocal([]byte("throttled_usec 12\n")); d != 12*time.Microsecond || err != nil {
		t.Errorf("cpu.stat.local: %v, %v", d, err)
	}
	for _, text := range []string{"", "\n", "throttled 12\n", "throttled_usec\n", "throttled_time 1x\n"} {
		if d, err := parseLocal([]byte(text)); err == nil || d != 0 {
			t.Errorf("parseLocal(%q) = %v without error", text, d)
		}
	}
}

func FuzzParseCounters(f *testing.F) {
	f.Add([]byte("nr_periods 30\nnr_throttled 3\nthrottled_time 1000000\n"))
	f.Add([]byte("usage_usec 7\nnr_periods -5\n throttled_usec 99999999999999999999\n"))
	f.Add([]byte("\n \nthrottled_usec 1\nthrottled_time 1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseCounters(text)
		if err != nil && c != (Counters{}) {
			t.Errorf("figures with an error: %+v", c)
		}
		if c.Throttled < 0 || c.Usage < 0 {
			t.Errorf("negative time: %+v", c)
		}
		if d, err := parseLocal(text); d < 0 || err != nil && d != 0 {
			t.Errorf("cpu.stat.local: %v, %v", d, err)
		}
	})
}

func FuzzInotifyEvents(f *testing.F) {
	f.Add(make([]byte, 16))
	f.Add([]byte{1, 0, 0, 0, 0, 1, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) { new(events).take(raw) })
}
