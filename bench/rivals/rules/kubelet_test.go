package rules

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// TestKubelet has the cases of TestStaticPolicyAdd (policy_static_test.go) that depend on the spec alone, with the quota that
// the gate's page promises on each side of it.
func TestKubelet(t *testing.T) {
	for _, c := range []struct {
		name          string
		spec          Resources
		exclusive     int
		before, after time.Duration
	}{
		{"GuPodSingleCore", Resources{1, 1}, 1, 100 * ms, bandwidth.NoQuota},
		{"GuPodMultipleCores", Resources{2, 2}, 2, 200 * ms, bandwidth.NoQuota},
		{"NonGuPod", Resources{1, 2}, 0, 200 * ms, 200 * ms},
		{"GuPodNonIntegerCore", Resources{0.977, 0.977}, 0, 97700 * time.Microsecond, 97700 * time.Microsecond},
		{"the request is not written", Resources{0, 3}, 3, 300 * ms, bandwidth.NoQuota},
		{"no limit", Resources{1, 0}, 0, bandwidth.NoQuota, bandwidth.NoQuota},
		{"the kernel's least quota", Resources{0.005, 0.005}, 0, ms, ms},
	} {
		for gate, quota := range map[bool]time.Duration{false: c.before, true: c.after} {
			s, _ := Kubelet{DisableCPUQuotaWithExclusiveCPUs: gate}.Next(Observed{Spec: c.spec})
			if s.ExclusiveCPUs != c.exclusive || s.Limit != quotaOf(quota) {
				t.Errorf("%s, gate %v: %+v, want %d CPUs and a quota of %v", c.name, gate, s, c.exclusive, quota)
			}
		}
	}
}
