package simulate

import (
	"fmt"
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Of two alike below a parent that its quota stops each time, the older one gets
// more from 6.18 on: what the newer one is owed is lost when both come back. The
// kernel itself (6.18.44, 2 CPUs at 250 Hz, two runs of 5 s): 0.432 and 0.168 CPUs
// with a period of 10 ms, 0.314 and 0.298 with one of 100 ms.
func TestOlderSiblingsComeBackBetter(t *testing.T) {
	shares := func(kernel, limit string) (older, newer float64) {
		s := parseText(t, fmt.Sprintf("version: 1\nduration: 5s\nhost: {cpus: 2, hz: 250, kernel: %q}\ncgroups:\n  "+
			"pod: {%s}\n  a: {parent: pod}\n  b: {parent: pod}\n"+
			"workloads:\n  a: {kind: burn, cgroup: a, threads: 3}\n  b: {kind: burn, cgroup: b, threads: 3}\n", kernel, limit))
		use := func(name string) float64 {
			_, median, _ := spread(t, s, func(o scenario.Outcome) float64 { return o.Cgroups[name].UsageSeconds / o.Seconds })
			return median
		}
		return use("a"), use("b")
	}
	for _, test := range []struct {
		kernel, limit string
		low, high     float64 // of the older one's share of both
	}{
		{"6.18", "quota: 6ms, period: 10ms", 0.67, 0.77},
		{"6.12", "quota: 6ms, period: 10ms", 0.42, 0.55},
		{"6.18", "quota: 60ms, period: 100ms", 0.50, 0.56},
		{"6.12", "quota: 60ms, period: 100ms", 0.42, 0.55},
	} {
		older, newer := shares(test.kernel, test.limit)
		t.Logf("%s, %s: %.3f and %.3f", test.kernel, test.limit, older, newer)
		if share := older / (older + newer); share < test.low || share > test.high {
			t.Errorf("%s, %s: the older one has %.2f of both, want %.2f to %.2f", test.kernel, test.limit, share, test.low, test.high)
		}
	}
}

// A sleeper that wakes up while its group is parked comes back behind all that are
// owed something, from 6.18 on. The kernel itself (6.18.44, 2 CPUs at 250 Hz, three
// runs of 5 s): 89, 97 and 189 sleeps of 10 ms, half of them took 57, 57 and 20 ms.
func TestWhoWakesLateComesBackBehind(t *testing.T) {
	sleeps := func(kernel string) float64 {
		s := parseText(t, fmt.Sprintf("version: 1\nduration: 5s\nhost: {cpus: 2, hz: 250, kernel: %q}\ncgroups:\n  "+
			"app: {quota: 8ms, period: 20ms}\n"+
			"workloads:\n  burners: {kind: burn, cgroup: app, threads: 5}\n  sleeper: {kind: sleeper, cgroup: app, sleep: 10ms}\n", kernel))
		_, median, _ := spread(t, s, func(o scenario.Outcome) float64 { return float64(o.Workloads["sleeper"].Count) })
		return median
	}
	before, since := sleeps("6.17"), sleeps("6.18")
	t.Logf("%v and %v sleeps", before, since)
	if since < 80 || since > 190 || before < 1.5*since {
		t.Errorf("%v sleeps in 6.17 and %v in 6.18", before, since)
	}
}
