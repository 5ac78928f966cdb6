package cgroup

import "testing"

func TestCountersGoOnPastTheSign(t *testing.T) {
	s, err := ParseStat(V1, "nr_periods -2147483648\nnr_throttled 2147483647\nthrottled_time 5\n")
	if err != nil || s.Periods != 1<<31 || s.ThrottledPeriods != 1<<31-1 {
		t.Errorf("got %+v, error %v", s, err)
	}
	for _, bad := range []string{"nr_periods -2147483649\n", "nr_periods -\n", "throttled_time -5\n"} {
		if _, err := ParseStat(V1, bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
