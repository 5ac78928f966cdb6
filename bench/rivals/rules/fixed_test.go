package rules

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// TestFixed: settings of the spec alone.
func TestFixed(t *testing.T) {
	spec := Resources{RequestCPUs: 1, LimitCPUs: 1.5}
	for _, c := range []struct {
		name  string
		rule  Fixed
		limit bandwidth.Limit
	}{
		{"plain", Raised(1), quotaOf(150 * ms)},
		{"doubled", Raised(2), quotaOf(300 * ms)},
		{"no limit", NoLimit(), quotaOf(bandwidth.NoQuota)},
		{"burst", In(100*ms, 1), bandwidth.Limit{Quota: 150 * ms, Period: 100 * ms, Burst: 150 * ms}},
		{"long burst", In(time.Second, 0.5), bandwidth.Limit{Quota: 1500 * ms, Period: time.Second, Burst: 750 * ms}},
		{"short period", In(5*ms, 0), bandwidth.Limit{Quota: 7500 * time.Microsecond, Period: 5 * ms}},
	} {
		if s, _ := c.rule.Next(Observed{Spec: spec}); s != (Setting{RequestCPUs: 1, Limit: c.limit}) {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	if s, _ := In(time.Second, 1).Next(Observed{Spec: Resources{RequestCPUs: 1}}); s.Limit.Limited() || s.Limit.Burst != 0 {
		t.Errorf("without a limit: %+v", s.Limit)
	}
}
