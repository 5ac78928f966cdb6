package forecast

import (
	"testing"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// A cpuset narrows the container alone. The quota of its pod stays, because what runs beside it spends that too: memcached
// beside xz was forecast 1.4 ms with a burst where 58 ms came, when the whole pod was narrowed instead.
func TestNarrowInsideAPod(t *testing.T) {
	for name, c := range map[string]struct {
		pod, want bandwidth.Limit
		r         Remedy
		width     int
	}{
		"in short periods": {bandwidth.Limit{Quota: 80 * ms, Period: 100 * ms},
			bandwidth.Limit{Quota: 8 * ms, Period: 10 * ms}, Remedy{}, 1},
		"with a burst": {bandwidth.Limit{Quota: 80 * ms, Period: 100 * ms},
			bandwidth.Limit{Quota: 80 * ms, Period: 100 * ms, Burst: 80 * ms}, Remedy{Burst: 80 * ms}, 1},
		"CPUs asked for": {bandwidth.Limit{Quota: 250 * ms, Period: 100 * ms},
			bandwidth.Limit{Quota: 25 * ms, Period: 10 * ms}, Remedy{CPUs: 4}, 4},
		"a small limit": {bandwidth.Limit{Quota: 4 * ms, Period: 100 * ms},
			bandwidth.Limit{Quota: ms, Period: 25 * ms}, Remedy{}, 1},
		"a period as short": {bandwidth.Limit{Quota: 8 * ms, Period: 10 * ms},
			bandwidth.Limit{Quota: 8 * ms, Period: 10 * ms}, Remedy{}, 1},
		"a limit of whole CPUs": {bandwidth.Limit{Quota: 200 * ms, Period: 100 * ms},
			bandwidth.Limit{Quota: 20 * ms, Period: 10 * ms}, Remedy{}, 2},
	} {
		s := scenario.Scenario{Cgroups: []scenario.Cgroup{{Name: "pod", Parent: -1, Limit: c.pod},
			{Name: "main", Parent: 0, Limit: bandwidth.Limit{Quota: bandwidth.NoQuota}}}}
		NarrowEffect.Simulate(&s, Cgroups{Container: 1, Binding: 0}, c.r)
		if pod, main := s.Cgroups[0], s.Cgroups[1]; pod.Limit != c.want || pod.Width != 0 || main.Width != c.width ||
			pod.Remedy != nil || main.Remedy != nil {
			t.Errorf("%s: pod %+v width %d, main width %d", name, pod.Limit, pod.Width, main.Width)
		}
	}
}
