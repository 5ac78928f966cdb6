package remedy

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

func TestUpkeepMovesNewcomersAndEndsWhatIsGone(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		before := h.k.Snapshot()
		p, err := Make(h.facts(), target, Request{Kind: Pin, CPUs: 2})
		if err != nil {
			t.Fatal(err)
		}
		h.apply(p)
		if due := h.reconcile(); len(due) > 0 {
			t.Fatalf("no container came, and there is to do: %+v", due)
		}

		h.make("/late")
		h.make("/a/late")
		h.run("/late", 20)
		h.run("/a/late", 21)
		if h.v == cgroup.V1 {
			// A runtime that looked at the machine and not at its parent.
			for _, path := range []string{"/late"} {
				h.write(cgroup.CPUSet, path, cgroup.FileCPUs, "0-7")
			}
		}
		if len(h.exclusive(target, p.CPUs)) == 0 {
			t.Fatal("the newcomers were to run on the CPUs of the target: the test shows nothing")
		}
		due := h.reconcile()
		if len(due) != 1 || due[0].Gone || len(due[0].Plan.Changes) == 0 {
			t.Fatalf("got %+v, want one plan that moves", due)
		}
		h.apply(due[0].Plan)
		if wrong := h.exclusive(target, p.CPUs); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		if due := h.reconcile(); len(due) > 0 {
			t.Fatalf("all is moved, and there is to do: %+v", due)
		}

		for _, pid := range []int{10, 20, 21} {
			h.k.Exit(pid)
		}
		for _, path := range []string{"/a/web", "/late", "/a/late"} {
			h.remove(path)
		}
		due = h.reconcile()
		if len(due) != 2 || !due[0].Gone || !due[1].Gone {
			t.Fatalf("got %+v, want the end of both transactions", due)
		}
		for _, c := range due {
			h.restoreID(c.ID)
		}
		if held, err := apply.Status(h.env()); err != nil || len(held) > 0 {
			t.Errorf("still in force: %+v, %v", held, err)
		}
		for _, diff := range before.Settings().Diff(h.k.Snapshot().Settings()) {
			if !strings.Contains(diff, "/a/web") {
				t.Error(diff)
			}
		}
	})
}

// A container that another program gave the target's CPUs is left alone, and named.
func TestUpkeepLeavesWhatOthersConfine(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		p, err := Make(h.facts(), target, Request{Kind: Pin, CPUs: 2})
		if err != nil {
			t.Fatal(err)
		}
		h.apply(p)
		h.make("/late")
		h.write(cgroup.CPUSet, "/late", cgroup.FileCPUs, p.CPUs.String())
		due := h.reconcile()
		if len(due) != 1 || len(due[0].Plan.Changes) > 0 || !slices.ContainsFunc(due[0].Plan.Warnings,
			func(w string) bool { return strings.Contains(w, "/late got "+p.CPUs.String()) }) {
			t.Errorf("got %+v, want a warning about /late only", due)
		}
	})
}

func (h *host) remove(path string) {
	h.t.Helper()
	controllers := []cgroup.Controller{cgroup.CPU}
	if !h.oneTree {
		controllers = append(controllers, cgroup.CPUSet)
	}
	for _, c := range controllers {
		if err := h.k.Remove(c, path); err != nil {
			h.t.Fatal(err)
		}
	}
	h.containers = slices.DeleteFunc(h.containers, func(c container.Container) bool { return c.Group.Path == path })
}

// A container that is started again has other cgroups under the same paths.
func TestUpkeepOfContainersStartedAgain(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		p, err := Make(h.facts(), target, Request{Kind: Pin, CPUs: 2})
		if err != nil {
			t.Fatal(err)
		}
		h.apply(p)
		for round := range 3 {
			h.make("/late")
			if h.v == cgroup.V1 {
				h.write(cgroup.CPUSet, "/late", cgroup.FileCPUs, "0-7")
			}
			h.run("/late", 20)
			for _, c := range h.reconcile() {
				if c.Gone {
					h.restoreID(c.ID)
				} else {
					h.apply(c.Plan)
				}
			}
			if wrong := h.exclusive(target, p.CPUs); len(wrong) > 0 {
				t.Fatalf("round %d: %q", round, wrong)
			}
			if held, _ := apply.Status(h.env()); len(held) > 2 {
				t.Fatalf("round %d: %d transactions in force: they pile up", round, len(held))
			}
			h.k.Exit(20)
			h.remove("/late")
		}

		h.k.Exit(10)
		h.remove("/a/web")
		h.make("/a/web")
		h.run("/a/web", 30)
		ended := 0
		for _, c := range h.reconcile() {
			if c.Gone {
				h.restoreID(c.ID)
				ended++
			}
		}
		if held, _ := apply.Status(h.env()); ended == 0 || len(held) > 0 {
			t.Fatalf("%d ended, still in force: %+v", ended, held)
		}
		if allowed, _ := h.k.Allowed(11); allowed.Size() != 8 {
			t.Errorf("the neighbour has %s back, want all", allowed)
		}
	})
}

func (h *host) restoreID(id string) {
	h.t.Helper()
	if _, err := apply.Restore(context.Background(), h.env(), apply.Selector{IDs: []string{id}}); err != nil {
		h.t.Fatal(err)
	}
}

// A unit that starts again has its new processes where systemd puts them: on v1
// outside the cpuset that a pin made.
func TestUpkeepBringsBackStrays(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	h.makeIn(cgroup.CPU, "/unit")
	h.limit("/unit", 1)
	unit := h.run("/unit", 10)
	p, err := Make(h.facts(), unit, Request{Kind: Pin})
	if err != nil {
		t.Fatal(err)
	}
	h.apply(p)
	h.k.Exit(10)
	h.k.Spawn("/unit", 11)
	h.k.Spawn("/unit", 12)
	h.refresh(unit)
	due := h.reconcile()
	if len(due) != 1 {
		t.Fatalf("got %+v, want one plan", due)
	}
	h.apply(due[0].Plan)
	for _, pid := range []int{11, 12} {
		if allowed, _ := h.k.Allowed(pid); !allowed.Equals(p.CPUs) {
			t.Errorf("process %d may use %s, want %s", pid, allowed, p.CPUs)
		}
	}
	h.refresh(unit)
	if due := h.reconcile(); len(due) > 0 {
		t.Errorf("all are back, and there is to do: %+v", due)
	}
	h.restore("")
	for _, pid := range []int{11, 12} {
		if at, _ := h.k.At(pid, cgroup.CPUSet); at != "/" {
			t.Errorf("process %d is in %s", pid, at)
		}
	}
	if cgroup.Exists(h.k, cgroup.CPUSet, p.Parameters[paramSet]) {
		t.Error("the cpuset is still there")
	}
}
