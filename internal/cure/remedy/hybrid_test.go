package remedy

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// The whole part alone, the fraction with everybody: nobody else is on the
// first, and the quota is gone, or with strict stays in short periods.
func TestHybrid(t *testing.T) {
	for _, strict := range []bool{false, true} {
		onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
			h.limit("/a/web", 2.5)
			before := h.k.Snapshot()
			h.watch(t)
			p := must(t)(Make(h.facts(), web, Request{Kind: Pin, Class: ClassHybrid, Strict: strict}))
			h.apply(p)
			allowed, _ := h.k.Allowed(10)
			if p.CPUs.Size() != 2 || !p.CPUs.IsSubsetOf(allowed) || allowed.Size() != 8 {
				t.Errorf("alone on %s, may use %s", p.CPUs, allowed)
			}
			if other, _ := h.k.Allowed(11); !other.Equals(allowed.Difference(p.CPUs)) {
				t.Errorf("the neighbour may use %s", other)
			}
			l, err := cgroup.ReadLimit(h.k, "/a/web")
			if err != nil {
				t.Fatal(err)
			}
			if n, limited := l.CPUs(); limited != strict || strict && (n != 2.5 || l.Period != 10*time.Millisecond) {
				t.Errorf("limit %+v", l)
			}
			if shares, err := cgroup.ReadShares(h.k, "/a/web"); err != nil || shares < 1024 {
				t.Errorf("weight %d, %v: it fell", shares, err)
			}
			said := strings.Join(p.Warnings, "; ")
			if want := map[bool]string{true: "can be throttled again", false: "more than its limit"}[strict]; !strings.Contains(said, want) {
				t.Errorf("warnings %q", said)
			}
			h.restore("")
			if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
				t.Error(diff)
			}
		})
	}
}

// A pin made later takes CPUs out of the shared ones, never the hybrid's own; a
// hybrid moves, and what it had alone is everybody's again.
func TestHybridBesideOthers(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
		h.limit("/a/web", 1.5)
		h.limit("/a/db", 2)
		before := h.k.Snapshot()
		h.watch(t)
		p := must(t)(Make(h.facts(), web, Request{Kind: Pin, Class: ClassHybrid}))
		h.apply(p)
		q := must(t)(Make(h.facts(), h.containers[1], Request{Kind: Pin}))
		h.apply(q)
		if wrong := h.exclusive(h.containers[1], q.CPUs); len(wrong) > 0 {
			t.Error(wrong)
		}
		if n, ok := (&planner{f: facts{h.facts()}}).confined("/a/web"); !ok || n < 1 {
			t.Errorf("it is confined to %g CPUs, %v", n, ok)
		}
		to := cpuset.New(7)
		if p.CPUs.Equals(to) || q.CPUs.Contains(7) {
			t.Fatalf("chosen %s and %s", p.CPUs, q.CPUs)
		}
		h.replace(must(t)(MoveTo(h.facts(), h.heldFor("/a/web").ID, to)))
		allowed, _ := h.k.Allowed(10)
		rest, _ := h.k.Allowed(12)
		all := parse(t, "0-7")
		if !allowed.Equals(all.Difference(q.CPUs)) || !rest.Equals(all.Difference(q.CPUs).Difference(to)) {
			t.Errorf("it may use %s, the others %s", allowed, rest)
		}
		if got := h.placement(h.facts()).Containers; len(got) != 2 || got[1].Class != "hybrid" && got[0].Class != "hybrid" {
			t.Errorf("state %+v", got)
		}
		h.restore("/a/db")
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
}

// The weight is such that with own busy threads elsewhere the one in the pool
// gets its fraction, as the kernel splits weights.
func TestGuarantee(t *testing.T) {
	onEach(t, "0-3", func(t *testing.T, h *host, web container.Container) {
		h.limit("/a/web", 2.5)
		h.options.Named = "/"
		h.shares("/a/db", 2048)
		p := must(t)(Make(h.facts(), web, Request{Kind: Pin, Class: ClassHybrid}))
		h.apply(p)
		part := func(path, other string) float64 {
			own, err := cgroup.ReadShares(h.k, path)
			if err != nil {
				t.Fatal(err)
			}
			others, err := cgroup.ReadShares(h.k, other)
			if err != nil {
				t.Fatal(err)
			}
			// 2 of 3 busy threads are elsewhere; 2 CPUs are in the pool.
			return float64(own) / 3 / (float64(own)/3 + float64(others)/2)
		}
		if got := part("/a/web", "/a/db") * part("/a", "/slice"); got < 0.49 || got > 0.6 {
			t.Errorf("it gets %g of a shared CPU, want 0.5", got)
		}
	})
	onEach(t, "0-3", func(t *testing.T, h *host, web container.Container) {
		h.limit("/a/web", 2.5)
		h.shares("/slice", 2*1024)
		p := must(t)(Make(h.facts(), web, Request{Kind: Pin, Class: ClassHybrid}))
		if said := strings.Join(p.Warnings, "; "); !strings.Contains(said, "not ours to raise") {
			t.Errorf("/a is no pod and not named: %q", said)
		}
	})
}

func TestHybridRefuses(t *testing.T) {
	onEach(t, "0-3", func(t *testing.T, h *host, web container.Container) {
		for _, tc := range []struct {
			limit float64
			r     Request
			want  string
		}{
			{2, Request{Kind: Pin, Class: ClassHybrid}, "has no fraction"},
			{0.5, Request{Kind: Pin, Class: ClassHybrid}, "no whole CPU"},
			{1.5, Request{Kind: Pin, Class: ClassHybrid, CPUs: 2}, "those of its limit"},
			{3.5, Request{Kind: Pin, Class: ClassHybrid}, "3 CPUs wanted, 2 free"},
			{4.5, Request{Kind: Pin, Class: ClassHybrid}, "4 CPUs wanted"},
			{1.5, Request{Kind: Pin, Class: "magic"}, "no class"},
			{1.5, Request{Kind: Pin, Strict: true}, "only a hybrid"},
			{1.5, Request{Kind: Narrow, Class: ClassHybrid}, "no class"},
		} {
			h.limit("/a/web", tc.limit)
			h.shares("/a/db", 2*1024)
			if refused := refusal(t, h.facts(), web, tc.r); !strings.Contains(refused.Error(), tc.want) {
				t.Errorf("limit %g, %+v: %v, want %q", tc.limit, tc.r, refused, tc.want)
			}
		}
	})
}

// On the real kernel: where all want CPU, one with a limit of 1.75 gets three
// quarters of the shared CPU and all of its own; without the weight it would be
// a third of the shared one.
func TestHybridOnTheKernel(t *testing.T) {
	r := newReal(t)
	r.Limit(r.Top+"/pod", 100)
	r.Limit(r.target, 1.75)
	r.Limit(r.neighbour, 100)
	limited := r.Settings()
	p, err := r.plan(r.target, Request{Kind: Pin, Class: ClassHybrid})
	if err != nil {
		t.Fatal(err)
	}
	if pool := parse(t, p.Parameters[paramPool]); pool.Size() > 1 {
		t.Skipf("the pool %s is larger than two busy threads fill", pool)
	}
	if _, err := apply.Apply(context.Background(), r.env(), p.Purpose(), p.Changes); err != nil {
		t.Fatal(err)
	}
	used := func(path string) time.Duration {
		g, err := r.Host.Group(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := cgroup.ReadStat(r.Host, g)
		if err != nil || s.Usage == nil {
			t.Fatalf("%+v, %v", s, err)
		}
		return *s.Usage
	}
	time.Sleep(500 * time.Millisecond)
	own, other := used(r.target), used(r.neighbour)
	time.Sleep(2 * time.Second)
	own, other = used(r.target)-own, used(r.neighbour)-other
	ratio := own.Seconds() / other.Seconds()
	t.Logf("it used %v, the neighbour %v in 2 s: ratio %.2f, want 7, without weight 2", own, other, ratio)
	if ratio < 3.5 {
		t.Errorf("ratio %.2f", ratio)
	}
	r.takeBack(limited)
}
