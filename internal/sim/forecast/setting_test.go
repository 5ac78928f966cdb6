package forecast

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

func TestSetting(t *testing.T) {
	const ms = time.Millisecond
	limit := bandwidth.Limit{Quota: 100 * ms, Period: 100 * ms}
	for _, tc := range []struct {
		remedy Remedy
		limit  bandwidth.Limit
		cpus   int
	}{
		{Remedy{Name: None}, limit, 0},
		{Remedy{Name: Burst, Burst: 50 * ms}, bandwidth.Limit{Quota: 100 * ms, Period: 100 * ms, Burst: 50 * ms}, 0},
		{Remedy{Name: Burst, Burst: 20 * ms, Period: 20 * ms}, bandwidth.Limit{Quota: 20 * ms, Period: 20 * ms, Burst: 20 * ms}, 0},
		{Remedy{Name: Raise, Factor: 1.5}, bandwidth.Limit{Quota: 150 * ms, Period: 100 * ms}, 0},
		{Remedy{Name: Pin, CPUs: 2}, bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * ms}, 2},
		{Remedy{Name: Narrow}, bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * ms}, 1},
	} {
		got, cpus, err := tc.remedy.Setting(limit, 4)
		if err != nil || got != tc.limit || cpus != tc.cpus {
			t.Errorf("%+v: %+v and %d CPUs, %v", tc.remedy, got, cpus, err)
		}
	}
	if _, _, err := (Remedy{Name: Pin, CPUs: 4}).Setting(limit, 4); err == nil {
		t.Error("all CPUs of the host were pinned")
	}
}
