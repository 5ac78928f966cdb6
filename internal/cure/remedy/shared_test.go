package remedy

import (
	"fmt"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Two transactions rest on one setting and are undone in either order. The one that
// stays keeps what it needs, and in the end all is as it was.
func TestSharedSettings(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		arrange func(h *host)
		first   Request
		second  Request
	}{
		"controllers that the first enabled": {"v2", func(h *host) {}, Request{Kind: Pin}, Request{Kind: Pin}},
		"a quota that the first raised and the second may burst above": {"v2",
			func(h *host) { h.limit("/top/pod", 2) }, Request{Kind: Raise}, Request{Kind: Burst}},
		"v1: a quota that the first lifted and the second's exceeds": {"v1",
			func(h *host) { h.limit("/top/pod", 2) }, Request{Kind: Weight}, Request{Kind: Raise, To: 3}},
		"exclusive CPUs of the first within the reach of the second": {"v1", func(h *host) {}, Request{Kind: Pin},
			Request{Kind: Pin, CPUs: 2}},
	} {
		for _, order := range [][]string{{"/top/pod/a", "/top/pod/b"}, {"/top/pod/b", "/top/pod/a"}} {
			t.Run(fmt.Sprintf("%s, %s first", name, order[0]), func(t *testing.T) {
				h := newHost(t, configs("0-7")[c.version], t.TempDir())
				h.options.Scope = "/"
				h.hand("/", cgroup.CPU)
				h.make("/top")
				h.hand("/top", cgroup.CPU)
				h.make("/top/pod")
				h.hand("/top/pod", cgroup.CPU)
				c.arrange(h)
				plans := map[string]Plan{}
				for i, path := range []string{"/top/pod/a", "/top/pod/b"} {
					h.make(path)
					h.limit(path, 1)
					h.run(path, 10+i)
				}
				before := h.k.Snapshot()
				for i, r := range []Request{c.first, c.second} {
					target := h.containers[i]
					p, err := Make(h.facts(), target, r)
					if err != nil {
						t.Fatal(err)
					}
					h.apply(p)
					plans[target.Group.Path] = p
				}
				for i, path := range order {
					if r := h.restore(path); len(r.Skipped) > 0 {
						t.Fatalf("restore %s: %+v", path, r.Skipped)
					}
					delete(plans, path)
					if i == 0 {
						h.stillInForce(plans[order[1]])
					}
				}
				if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
					t.Error(diff)
				}
			})
		}
	}
}

// stillInForce checks that a plan has the effect it was made for.
func (h *host) stillInForce(p Plan) {
	h.t.Helper()
	levels, err := cgroup.Levels(h.k, p.Target.Group.Path)
	if err != nil {
		h.t.Fatal(err)
	}
	limit, limited, at := cgroup.Effective(levels)
	switch p.Remedy {
	case Pin:
		if wrong := h.exclusive(p.Target, p.CPUs); len(wrong) > 0 || limited {
			h.t.Fatalf("pin: %q, limited %v", wrong, limited)
		}
	case Raise:
		if limit <= 1 {
			h.t.Fatalf("raise: limited to %g at %s", limit, at)
		}
	case Burst:
		for _, level := range levels[:2] {
			if level.Limit.Burst == 0 || level.Limit.Burst > level.Limit.Quota {
				h.t.Fatalf("burst: %+v", level)
			}
		}
	case Weight:
		if limited {
			h.t.Fatalf("weight: limited to %g at %s", limit, at)
		}
	}
}

// A container that is all there is in a slice uses the cpuset that was made for
// the slice: when the slice's pin goes first, it stays in there.
func TestPinInASetMadeForItsSlice(t *testing.T) {
	h := newHost(t, configs("0-7")["v1"], t.TempDir())
	h.makeIn(cgroup.CPU, "/g")
	h.makeIn(cgroup.CPU, "/g/c")
	h.limit("/g/c", 1)
	h.run("/g/c", 10)
	before := h.k.Snapshot()
	slice := h.at("/g")
	outer, err := Make(h.facts(), slice, Request{Kind: Pin, CPUs: 2})
	if err != nil {
		t.Fatal(err)
	}
	h.apply(outer)
	inner, err := Make(h.facts(), h.refresh(h.containers[0]), Request{Kind: Pin})
	if err != nil {
		t.Fatal(err)
	}
	h.apply(inner)
	h.restore("/g")
	if wrong := h.exclusive(h.containers[0], inner.CPUs); len(wrong) > 0 {
		t.Error(wrong)
	}
	h.restore("")
	if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
		t.Error(diff)
	}
}
