package remedy

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// A limit of whole CPUs is kept by the cpuset, another one by a quota in short
// periods; the least quota that the kernel takes bounds how short.
func TestNarrow(t *testing.T) {
	for _, tc := range []struct {
		limit  float64
		size   int
		quota  time.Duration // below 0: off
		period time.Duration
	}{
		{2, 2, -1, 0},
		{1, 1, -1, 0},
		{2.5, 3, 25 * time.Millisecond, 10 * time.Millisecond},
		{0.2, 1, 2 * time.Millisecond, 10 * time.Millisecond},
		{0.03, 1, 1020 * time.Microsecond, 34 * time.Millisecond},
		{0.01, 1, time.Millisecond, 100 * time.Millisecond},
		{7.5, 8, 75 * time.Millisecond, 10 * time.Millisecond},
	} {
		onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
			h.limit("/a/web", tc.limit)
			before := h.k.Snapshot()
			p, err := Make(h.facts(), target, Request{Kind: Narrow})
			if err != nil {
				t.Fatal(err)
			}
			h.apply(p)
			allowed, _ := h.k.Allowed(10)
			if allowed.Size() != tc.size || allowed.String() != p.Parameters[paramCPUs] {
				t.Errorf("limit %g: it may use %s, the plan says %s, want %d CPUs", tc.limit, allowed, p.Parameters[paramCPUs], tc.size)
			}
			if other, _ := h.k.Allowed(11); other.Size() != 8 {
				t.Errorf("limit %g: the neighbour may use only %s", tc.limit, other)
			}
			l, err := cgroup.ReadLimit(h.k, "/a/web")
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Limited(); got != (tc.quota >= 0) || got && (l.Quota != tc.quota || l.Period != tc.period) {
				t.Errorf("limit %g: %+v, want quota %v in %v", tc.limit, l, tc.quota, tc.period)
			}
			if wrong := h.k.Check(); len(wrong) > 0 {
				t.Error(wrong)
			}
			h.restore("")
			if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
				t.Error(diff)
			}
		})
	}
}

// With a burst a limit with a fraction keeps its quota and its period, and so does a pod's that may bind.
func TestNarrowWithBurst(t *testing.T) {
	const burst = 150 * time.Millisecond
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		h.options.Named = "/"
		h.limit("/a/web", 2.5)
		h.limit("/a", 2.75)
		before := h.k.Snapshot()
		p := must(t)(Make(h.facts(), target, Request{Kind: Narrow, CPUs: 3, Burst: burst}))
		h.apply(p)
		for path, want := range map[string]cgroup.Limit{
			"/a/web": {Quota: 250 * time.Millisecond, Period: 100 * time.Millisecond, Burst: burst},
			"/a":     {Quota: 275 * time.Millisecond, Period: 100 * time.Millisecond, Burst: burst},
		} {
			if l, err := cgroup.ReadLimit(h.k, path); err != nil || l != want {
				t.Errorf("%s: %+v, %v, want %+v", path, l, err, want)
			}
		}
		if allowed, _ := h.k.Allowed(10); allowed.Size() != 3 {
			t.Errorf("it may use %s", allowed)
		}
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		all := 0.79
		for want, r := range map[string]Request{
			"narrow keeps none":       {Kind: Narrow, Burst: burst, CPUs: 2},
			"the period stays":        {Kind: Narrow, Burst: burst, Period: 20 * time.Millisecond},
			"no unused time to spend": {Kind: Narrow, Burst: burst, Observed: &hoststate.Observed{UsedCPUs: &all}},
			"burst in seconds of -1":  {Kind: Narrow, Burst: -time.Second},
		} {
			h.limit("/a/web", 0.8)
			if r.CPUs > 0 {
				h.limit("/a/web", float64(r.CPUs))
			}
			if refused := refusal(t, h.facts(), target, r); !strings.Contains(refused.Error(), want) {
				t.Errorf("%+v: %v, want %q", r, refused, want)
			}
		}
	})
}

// A pod's quota that may bind is shortened as well, or goes if what is below it
// is bounded. That of a slice which the user did not name stays, and the plan says so.
func TestNarrowAncestors(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		h.limit("/a", 1)
		p, err := Make(h.facts(), target, Request{Kind: Narrow})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Skipped) != 1 || p.Skipped[0].Path != "/a" || !strings.Contains(p.Skipped[0].Why, "may still stop") {
			t.Errorf("skipped %+v", p.Skipped)
		}
		h.options.Named = "/"
		h.apply(must(t)(Make(h.facts(), target, Request{Kind: Narrow})))
		l, err := cgroup.ReadLimit(h.k, "/a")
		if err != nil || l.Quota != 10*time.Millisecond || l.Period != 10*time.Millisecond {
			t.Errorf("the other child of /a is unlimited, so its limit must stay at 1: %+v, %v", l, err)
		}
	})
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		h.options.Named = "/"
		h.limit("/a/db", 1)
		h.limit("/a", 2)
		h.apply(must(t)(Make(h.facts(), target, Request{Kind: Narrow})))
		if l, err := cgroup.ReadLimit(h.k, "/a"); err != nil || l.Limited() {
			t.Errorf("all below /a is bounded: %+v, %v", l, err)
		}
	})
}

func must(t *testing.T) func(Plan, error) Plan {
	return func(p Plan, err error) Plan {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// What is narrowed is no claim on its CPUs: another one may be pinned there, and
// what is pinned is not floated upon.
func TestNarrowBesidePin(t *testing.T) {
	onEach(t, "0-3", func(t *testing.T, h *host, target container.Container) {
		h.limit("/a/db", 2)
		h.apply(must(t)(Make(h.facts(), h.containers[1], Request{Kind: Narrow})))
		p := must(t)(Make(h.facts(), target, Request{Kind: Pin}))
		h.apply(p)
		if wrong := h.exclusive(target, p.CPUs); len(wrong) > 0 {
			t.Error(wrong)
		}
	})
	onEach(t, "0-3", func(t *testing.T, h *host, target container.Container) {
		p := must(t)(Make(h.facts(), target, Request{Kind: Pin}))
		h.apply(p)
		h.limit("/a/db", 2)
		q := must(t)(Make(h.facts(), h.containers[1], Request{Kind: Narrow}))
		h.apply(q)
		if wrong := h.exclusive(target, p.CPUs); len(wrong) > 0 || q.Parameters[paramCPUs] == "" {
			t.Error(wrong)
		}
		h.limit("/slice", 3.5)
		refused := refusal(t, h.facts(), h.containers[2], Request{Kind: Narrow})
		if !strings.Contains(refused.Error(), "4 CPUs wanted, 3 available") {
			t.Error(refused)
		}
	})
}

// What another one floats on is offered only as far as the target may use it.
func TestNarrowStaysWithinItsParent(t *testing.T) {
	onEach(t, "0-1", func(t *testing.T, h *host, target container.Container) {
		for _, path := range []string{"/a/web", "/a/db", "/a"} {
			h.write(cgroup.CPUSet, path, cgroup.FileCPUs, "0")
		}
		h.limit("/slice", 1)
		other := must(t)(Make(h.facts(), h.containers[2], Request{Kind: Narrow}))
		h.apply(other)
		p := must(t)(Make(h.facts(), target, Request{Kind: Narrow}))
		h.apply(p) // which fails where the kernel refuses it
		if other.Parameters[paramCPUs] != "1" || p.Parameters[paramCPUs] != "0" {
			t.Errorf("the other one on %s, the target on %s, which may use 0", other.Parameters[paramCPUs], p.Parameters[paramCPUs])
		}
	})
}

// A kubelet with the static policy confines each container that got no CPUs to those that are left. What it writes over a
// narrow is written again, unless it gave the CPU to another container.
func TestNarrowBesideKubelet(t *testing.T) {
	onEach(t, "0-3", func(t *testing.T, h *host, target container.Container) {
		kubelet := func(gave, left string) {
			state := fmt.Sprintf(`{"policyName":"static","defaultCpuSet":%q,"entries":{"uid":{"store":%q}}}`, left, gave)
			h.root["var/lib/kubelet/cpu_manager_state"] = &fstest.MapFile{Data: []byte(state)}
			for _, path := range []string{"/a/web", "/a/db"} {
				h.write(cgroup.CPUSet, path, cgroup.FileCPUs, left)
			}
		}
		kubelet("1", "2-3")
		h.limit("/a/web", 1)
		for uid, want := range map[string]string{"": "the cpuset /a/db has 2-3", "11111111": `the kubelet's "static" policy may write`} {
			target.PodUID = uid
			if refused := refusal(t, h.facts(), target, Request{Kind: Pin}); !strings.Contains(refused.Error(), want) {
				t.Errorf("a pin: %v, want %q", refused, want)
			}
		}
		target.PodUID = "11111111"
		p := must(t)(Make(h.facts(), target, Request{Kind: Narrow}))
		h.apply(p)
		got := p.Parameters[paramCPUs]
		other, ok := map[string]string{"2": "3", "3": "2"}[got]
		if !ok {
			t.Fatalf("it is on %s, want one of 2 and 3", got)
		}
		if l, err := cgroup.ReadLimit(h.k, "/a/web"); err != nil || !l.Limited() {
			t.Errorf("its limit is %+v (%v), and the kubelet may write another cpuset", l, err)
		}
		id := h.heldFor("/a/web").ID
		kubelet("1", "2-3")
		plans, err := Reassert(h.facts(), []string{id})
		if err != nil || len(plans) != 1 || len(plans[0].Changes) != 1 {
			t.Fatalf("%+v (%v), want its CPU written again", plans, err)
		}
		kubelet("1,"+got, other)
		if _, err := Reassert(h.facts(), []string{id}); err == nil || !strings.Contains(err.Error(), "the kubelet's") {
			t.Errorf("its CPU is another container's: %v", err)
		}
		f := h.facts()
		f.Load = map[int]float64{0: 0, 1: 1, 2: 0.5, 3: 0.5}
		used := 0.5
		g := f.Groups["/a/web"]
		g.UsedCPUs = &used
		f.Groups["/a/web"] = g
		if move, ok := Respread(f, id); !ok || move.To.String() != other {
			t.Errorf("%+v, want a move to %s", move, other)
		}
	})
}

func TestNarrowRefuses(t *testing.T) {
	onEach(t, "0-3", func(t *testing.T, h *host, target container.Container) {
		for want, r := range map[string]Request{
			"fewer than its limit":     {Kind: Narrow, CPUs: 1},
			"there is no":              {Kind: Narrow, Via: "magic"},
			"number of CPUs of -1":     {Kind: Narrow, CPUs: -1},
			"CPUs wanted, 4 available": {Kind: Narrow, CPUs: 5},
			`there is no "cpuset"; `:   {Kind: Burst, Via: ViaCPUSet},
		} {
			h.limit("/a/web", 2)
			if refused := refusal(t, h.facts(), target, r); !strings.Contains(refused.Error(), want) {
				t.Errorf("%+v: %v, want %q", r, refused, want)
			}
		}
	})
}

// The least loaded CPUs, but not across NUMA nodes.
func TestSpread(t *testing.T) {
	m := machine(t, "0-7") // one node, threads 2k and 2k+1 share a core
	place := func(n int, load map[int]float64) string {
		t.Helper()
		none := cpuset.New()
		f := hoststate.Facts{Machine: m, Load: load, CPUSetVersion: cgroup.V2,
			Sets: map[string]hoststate.Set{"/": {CPUSetState: cgroup.CPUSetState{Effective: m.Online()}}}}
		p := &planner{f: decoded(t, f), r: Request{Kind: Narrow, Reserve: &none}}
		choice, err := p.float(targetCpuset{path: "/x", allowed: m.Online()}, n)
		if err != nil {
			t.Fatal(err)
		}
		return choice.own.String()
	}
	busy := map[int]float64{0: 1, 1: 1, 2: 0.9, 3: 0.8}
	if got := place(2, nil); got != "0,2" {
		t.Errorf("no load known: %s, want two cores", got)
	}
	if got := place(2, busy); got != "4,6" {
		t.Errorf("busy below 4: %s", got)
	}
	if got := place(6, busy); got != "0,3-7" {
		t.Errorf("6 of 8: %s, want one thread of each busy core rather than two of one", got)
	}
	for id := range m.CPUs {
		m.CPUs[id].NUMANode = 0
		if id >= 4 {
			m.CPUs[id].NUMANode = 1
		}
	}
	m.NUMANodes = append(m.NUMANodes, m.NUMANodes[0])
	m.NUMANodes[1].ID = 1
	if got := place(2, map[int]float64{0: 1, 1: 1, 2: 1, 4: 1, 5: 1, 6: 1}); got != "0,3" {
		t.Errorf("the idle ones 3 and 7 are on two nodes: %s, want one of them with one of its node", got)
	}
	if got := place(4, map[int]float64{0: 0.1, 4: 1}); got != "0-3" {
		t.Errorf("4 of the idler node: %s", got)
	}
}
