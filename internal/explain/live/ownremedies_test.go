package live

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/sampled/sampler"
)

// What can be done without rights follows from the cause: the pool that spent it, a limit, the sibling, a longer period. Without a
// stop there is nothing to be done.
func TestOwnRemedies(t *testing.T) {
	explained := func(cause diagnose.Cause, guilty string, advice string) *diagnose.Explanation {
		return &diagnose.Explanation{Cause: cause, LimitCPUs: new(0.5),
			Causes: []diagnose.RankedCause{{Cause: cause, Stopped: new(time.Second), Guilty: []string{guilty}}},
			Pools:  []diagnose.PoolUse{{Name: "worker-*", Widest: 4, Advice: advice}},
			Wanted: []diagnose.Bar{{CPUs: 0, Time: time.Second}, {CPUs: 6, Time: time.Millisecond}}}
	}
	found := sampler.Found{CPUsAllowed: 4, LongFull: 1, LongAll: 20}
	calm := explained(diagnose.None, "", "")
	calm.Causes[0].Stopped = nil
	for _, c := range []struct {
		name string
		e    *diagnose.Explanation
		says []string
	}{
		{"a known pool", explained(diagnose.Burst, "worker-*", "set it to 1"),
			[]string{"`worker-*`: set it to 1", "limit of 4 CPUs", "in 1 of 20 s"}},
		{"an unknown pool", explained(diagnose.Pool, "worker-*", ""), []string{"fewer than 4 threads", "limit of 4 CPUs", "in 1 of 20 s"}},
		{"a shortage", explained(diagnose.Shortage, "worker-*", ""), []string{"fewer than 4 threads", "a larger limit"}},
		{"a sibling", explained(diagnose.Ancestor, "/pod/proxy", ""), []string{"a limit for /pod/proxy", "in 1 of 20 s"}},
		{"nothing", calm, nil},
	} {
		got := ownRemedies(c.e, found)
		if got == nil || len(got) != len(c.says) {
			t.Errorf("%s: %q", c.name, got)
			continue
		}
		for i, says := range c.says {
			if !strings.Contains(got[i], says) {
				t.Errorf("%s: %q does not say %q", c.name, got[i], says)
			}
		}
	}
	if few := ownRemedies(explained(diagnose.Burst, "worker-*", ""), sampler.Found{LongAll: enoughSeconds - 1}); len(few) != 2 {
		t.Errorf("of few seconds: %q", few)
	}
}
