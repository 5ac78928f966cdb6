package remedy

import (
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Whole cores, and cores of which one thread idles: no other container gets the other
// one, not by moving and not as a newcomer. A move knows both again.
func TestWholeCoresAndIdleSiblings(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		before := h.k.Snapshot()
		p := must(t)(Make(h.facts(), target, Request{Kind: Pin, CPUs: 2, FullCores: true}))
		said := false
		for _, c := range p.Changes {
			said = said || c.Path == "/a/web" && strings.Contains(c.Why, "whole core")
		}
		if p.CPUs.String() != "2-3" || !said {
			t.Errorf("whole cores: %s, changes %+v", p.CPUs, p.Changes)
		}
		odd := refusal(t, h.facts(), target, Request{Kind: Pin, CPUs: 3, FullCores: true})
		if !strings.Contains(odd.Error(), "3 CPUs wanted as whole cores") || !strings.Contains(odd.Error(), "--full-cores") {
			t.Error(odd)
		}
		many := refusal(t, h.facts(), target, Request{Kind: Pin, CPUs: 4, IdleSiblings: true})
		if !strings.Contains(many.Error(), "on cores of their own") {
			t.Error(many)
		}

		p = must(t)(Make(h.facts(), target, Request{Kind: Pin, CPUs: 2, IdleSiblings: true}))
		h.apply(p)
		gone := cpuset.New(2, 3, 4, 5)
		if p.CPUs.String() != "2,4" || h.allowed(10) != "2,4" || p.Parameters[paramIdle] != "3,5" {
			t.Errorf("idle siblings: %s, idle %s", p.CPUs, p.Parameters[paramIdle])
		}
		free := func(gone cpuset.CPUSet) {
			t.Helper()
			for _, pid := range []int{11, 12} {
				if got := parse(t, h.allowed(pid)); !got.Intersection(gone).IsEmpty() || got.Size() != 4 {
					t.Errorf("process %d may use %s", pid, got)
				}
			}
		}
		free(gone)
		if due := h.reconcile(); len(due) > 0 {
			t.Errorf("right after it there is to do: %+v", due)
		}
		h.make("/late")
		h.run("/late", 13)
		h.write(cgroup.CPUSet, "/late", "cpuset.cpus", "0-7")
		for _, c := range h.reconcile() {
			h.apply(c.Plan)
		}
		if got := parse(t, h.allowed(13)); !got.Intersection(gone).IsEmpty() {
			t.Errorf("the newcomer may use %s", got)
		}
		state := h.placement(h.facts())
		if c := state.Containers[0]; !c.IdleSiblings || c.Idle.String() != "3,5" || c.Current.String() != "2,4" {
			t.Errorf("%+v", c)
		}
		more := refusal(t, h.facts(), h.containers[1], Request{Kind: Pin, CPUs: 3})
		if !strings.Contains(more.Error(), "2 free") {
			t.Error(more)
		}
		move, err := MoveTo(h.facts(), h.heldFor("/a/web").ID, cpuset.New(4, 6))
		if err != nil {
			t.Fatal(err)
		}
		h.replace(move)
		if h.allowed(10) != "4,6" || move.Parameters[paramIdle] != "5,7" {
			t.Errorf("moved to %s, idle %s", h.allowed(10), move.Parameters[paramIdle])
		}
		free(cpuset.New(4, 5, 6, 7))
		h.k.Exit(13)
		for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
			if h.oneTree && c == cgroup.CPUSet {
				continue
			}
			if err := h.k.Remove(c, "/late"); err != nil {
				t.Fatal(err)
			}
		}
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
}

// On two CPUs one is the system's and the other may be exclusive. The state says that
// there is no room then, and no container loses its CPU.
func TestTinyHost(t *testing.T) {
	onEach(t, "0-1", func(t *testing.T, h *host, target container.Container) {
		p := must(t)(Make(h.facts(), target, Request{Kind: Pin}))
		h.apply(p)
		state := h.placement(h.facts())
		if c := state.Containers[0]; c.Current.String() != "1" || !strings.Contains(c.Immovable, "no room") {
			t.Errorf("%+v", c)
		}
		if got := refusal(t, h.facts(), h.containers[1], Request{Kind: Pin, CPUs: 1}); !strings.Contains(got.Error(), "0 free") {
			t.Error(got)
		}
	})
}

// Of the CPUs that it may use it gets the ones that cross nothing, and where it
// was given as many as it wants it keeps those.
func TestPinCrossesNothingAndKeeps(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		h.limit("/a/web", 2)
		h.write(cgroup.CPUSet, "/a/web", "cpuset.cpus", "3,6")
		p := must(t)(Make(h.facts(), target, Request{Kind: Pin}))
		if p.CPUs.String() != "3,6" {
			t.Errorf("it had 3,6 and gets %s", p.CPUs)
		}
	})
}
