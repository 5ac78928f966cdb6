package sampled

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// truths are simulated hosts whose cause is known by how they are made.
var truths = map[string]struct {
	make    func(seed uint64) *host
	cause   diagnose.Cause
	guilty  string
	suffers string
}{
	"a pool that is wide for short times": {cause: diagnose.Burst, guilty: "worker-*", make: func(seed uint64) *host {
		h := newHost(seed, 4, 100*ms, 100*ms)
		h.pool("worker", 8, 270*ms, 24*ms)
		return h
	}},
	"a pool that stops another one": {cause: diagnose.Pool, guilty: "compact-*", suffers: "http-*", make: func(seed uint64) *host {
		h := newHost(seed, 2, 60*ms, 100*ms)
		h.pool("compact", 4, 250*ms, 25*ms)
		h.pool("http", 3, 40*ms, 2*ms)
		return h
	}},
	"a pool that is wide, beside one without clients": {cause: diagnose.Burst, guilty: "child-*", make: func(seed uint64) *host {
		h := newHost(seed, 2, 60*ms, 100*ms)
		h.pool("child", 4, 250*ms, 25*ms)
		for _, w := range h.pool("listener", 3, 40*ms, 2*ms) {
			w.idle = true
		}
		return h
	}},
	"more work than the limit": {cause: diagnose.Shortage, guilty: "spin-*", make: func(seed uint64) *host {
		h := newHost(seed, 2, 50*ms, 100*ms)
		h.pool("spin", 3, 0, 0)
		return h
	}},
	"a request longer than the quota": {cause: diagnose.TinyLimit, guilty: "report", make: func(seed uint64) *host {
		h := newHost(seed, 2, 30*ms, 100*ms)
		h.pool("report", 1, 600*ms, 100*ms)[0].comm = "report"
		return h
	}},
	"a sibling that spends the pod's quota": {cause: diagnose.Ancestor, make: func(seed uint64) *host {
		h := newHost(seed, 2, 60*ms, 100*ms)
		h.ofPod = true
		h.pool("http", 3, 40*ms, 2*ms)
		for _, w := range h.pool("proxy", 3, 0, 0) {
			w.ours, w.sibling = false, true
		}
		return h
	}},
	"nothing": {cause: diagnose.None, make: func(seed uint64) *host {
		h := newHost(seed, 4, 200*ms, 100*ms)
		h.pool("http", 4, 40*ms, 3*ms)
		return h
	}},
	"others on the same CPUs": {cause: diagnose.Neighbours, make: func(seed uint64) *host {
		h := newHost(seed, 2, 200*ms, 100*ms)
		h.pool("http", 3, 40*ms, 6*ms)
		for _, w := range h.pool("batch", 6, 0, 0) {
			w.ours = false
		}
		return h
	}},
	"others, and no limit": {cause: diagnose.Neighbours, make: func(seed uint64) *host {
		h := newHost(seed, 2, 0, 0)
		h.pool("http", 3, 40*ms, 6*ms)
		for _, w := range h.pool("batch", 6, 0, 0) {
			w.ours = false
		}
		return h
	}},
}

// The cause, the pool that spent the quota and the one that is stopped for it are those that the host was made with, whenever the
// samples were taken, closely or every 20 to 30 ms.
func TestCauses(t *testing.T) {
	for name, truth := range truths {
		for _, closest := range []time.Duration{5 * ms, 10 * ms, 20 * ms} {
			testCause(t, name, truth.make, 8*time.Second, closest, truth.cause, truth.guilty, truth.suffers)
		}
	}
}

// The same where no counter tells of the stops: the quota is the pod's, whose cgroup is not visible. Where the container's own is as
// large the two are one limit, and nothing is hidden where nothing stops it.
func TestHiddenQuota(t *testing.T) {
	for name, truth := range truths {
		testCause(t, name+", hidden", func(seed uint64) *host {
			h := truth.make(seed)
			h.hides = true
			return h
		}, 40*time.Second, 10*ms, truth.cause, truth.guilty, truth.suffers)
	}
}

// testCause looks at a host with eight seeds.
func testCause(t *testing.T, name string, make func(seed uint64) *host, length, closest time.Duration, cause diagnose.Cause,
	guilty, suffers string) {
	t.Helper()
	wrong, said := 0, ""
	const runs = 8
	for seed := range uint64(runs) {
		a, hostUsed := make(seed).look(length, closest)
		e := a.Finish(hostUsed).Explain()
		if p := a.sums.throttled; p.Spent > p.SpentIn*time.Duration(a.target.CPUsAllowed) {
			t.Errorf("%s: %v of CPU time in %v, on %d CPUs", name, p.Spent, p.SpentIn, a.target.CPUsAllowed)
		}
		first := e.Causes[0]
		if strings.Contains(e.Verdict, "most of all") { // samples know no neighbour by name
			t.Errorf("%s: %s", name, e.Verdict)
		}
		if e.Cause != cause || guilty != "" && !slices.Contains(first.Guilty, guilty) || first.Suffers != suffers {
			wrong++
			said += fmt.Sprintf("\n%d: %s, guilty %v, suffers %q: %s\n%s", seed, e.Cause, first.Guilty, first.Suffers,
				e.Verdict, first.Evidence)
		}
	}
	if wrong > 0 {
		t.Errorf("%s, samples every %v: %d of %d wrong:%s", name, closest, wrong, runs, said)
	}
}
