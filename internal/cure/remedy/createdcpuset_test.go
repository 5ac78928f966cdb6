package remedy

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
)

// A secondary in the root cpuset (v1) gets a cpuset that we create. It holds what the lender
// lends and no CPU that another has alone; a revocation reaches it, and it bars no later pin.
func TestSecondaryInACreatedCpuset(t *testing.T) {
	for name, c := range map[string]struct {
		confined string // the CPUs that another program gave to the cgroup beside; "": all
		pinned   bool   // the cgroup beside has 2 CPUs alone, and lends none
		want     string // the CPUs of the secondary
	}{
		"a lender alone":                             {want: "0-7"},
		"beside a pin that lends nothing":            {pinned: true, want: "0-3,6-7"},
		"beside a cpuset that another program wrote": {confined: "6-7", want: "0-7"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, cgroupmodel.V1("0-7"), t.TempDir())
			owner, beside, late := h.inCpuset("/owner", 10), h.inCpuset("/beside", 11), h.inCpuset("/late", 12)
			h.makeIn(cgroup.CPU, "/unit")
			unit := h.run("/unit", 13)
			if c.confined != "" {
				h.write(cgroup.CPUSet, "/beside", cgroup.FileCPUs, c.confined)
			}
			before := h.k.Snapshot()
			pin := must(t)(Make(h.facts(), owner, Request{Kind: Pin, CPUs: 2, Shares: true}))
			h.apply(pin)
			if c.pinned {
				h.apply(must(t)(Make(h.facts(), beside, Request{Kind: Pin, CPUs: 2})))
			}
			h.apply(must(t)(Make(h.facts(), unit, Request{Kind: Secondary})))
			want := parse(t, c.want)
			if now, _ := h.k.Allowed(13); !now.Equals(want) {
				t.Errorf("the secondary may use %s, want %s (lent %s)", now, want, pin.CPUs)
			}
			if due := h.reconcile(); len(due) > 0 {
				t.Errorf("still to do: %+v", due)
			}
			h.apply(must(t)(Make(h.facts(), late, Request{Kind: Pin, CPUs: 1})))
			h.restore("/late")
			h.apply(h.revoke(h.heldFor("/owner").ID))
			if now, _ := h.k.Allowed(13); !now.Equals(want.Difference(pin.CPUs)) {
				t.Errorf("revoked, the secondary may use %s", now)
			}
			h.restore("")
			if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
				t.Error(diff)
			}
		})
	}
}

// The kernel refuses a cpuset that overlaps an exclusive sibling (v1), also one that is only on the
// way to the target's.
func TestCreatedCpusetBesideAnExclusiveOne(t *testing.T) {
	for _, scope := range []string{"/", "/pod"} {
		for _, kind := range []Kind{Pin, Narrow, Secondary} {
			t.Run(string(kind)+" in "+scope, func(t *testing.T) {
				h := newHost(t, cgroupmodel.V1("0-7"), t.TempDir())
				h.make("/exclusive")
				h.write(cgroup.CPUSet, "/exclusive", cgroup.FileCPUs, "6-7")
				h.write(cgroup.CPUSet, "/exclusive", cgroup.FileExclusiveV1, "1")
				for _, path := range []string{"/pod", "/pod/unit", "/owner"} {
					h.makeIn(cgroup.CPU, path)
				}
				h.limit("/pod/unit", 1)
				owner, unit := h.run("/owner", 10), h.run("/pod/unit", 11)
				before := h.k.Snapshot()
				h.apply(must(t)(Make(h.facts(), owner, Request{Kind: Pin, CPUs: 1, Shares: true})))
				h.options.Scope = scope
				h.apply(must(t)(Make(h.facts(), unit, Request{Kind: kind})))
				if now, _ := h.k.Allowed(11); !now.IsSubsetOf(parse(t, "0-5")) {
					t.Errorf("it may use %s", now)
				}
				h.restore("/pod/unit")
				h.options.Scope = ""
				h.restore("")
				if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
					t.Error(diff)
				}
			})
		}
	}
}

// A created cpuset is lent what its parent has: a parent that is widened for it could not be narrowed
// again before the created one is removed.
func TestNothingIsLentBelowANarrowerParent(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-7"), t.TempDir())
	owner := h.inCpuset("/owner", 10)
	h.make("/pod")
	h.makeIn(cgroup.CPU, "/pod/unit")
	unit := h.run("/pod/unit", 11)
	if err := h.k.Attach(cgroup.CPUSet, "/", 11); err != nil {
		t.Fatal(err)
	}
	unit = h.refresh(unit)
	before := h.k.Snapshot()
	h.apply(must(t)(Make(h.facts(), owner, Request{Kind: Pin, CPUs: 2, Shares: true})))
	h.options.Scope = "/pod"
	p := must(t)(Make(h.facts(), unit, Request{Kind: Secondary}))
	if lent := p.Parameters[paramBorrowed]; lent != "" {
		t.Errorf("lent %s", lent)
	}
	h.apply(p)
	h.restore("/pod/unit")
	h.options.Scope = ""
	h.restore("")
	if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
		t.Error(diff)
	}
}

// Two pins below cpusets that the first of them created (v1, with a scope): the second takes CPUs out of
// one that only leads to the first. Restored in either order, each ends as a whole.
func TestPinsBesideEachOtherBelowACreatedCpuset(t *testing.T) {
	for _, first := range []string{"/top/a/unit", "/top/b/unit"} {
		t.Run(first+" first", func(t *testing.T) {
			h := newHost(t, cgroupmodel.V1("0-7"), t.TempDir())
			h.options.Scope = "/top"
			for _, path := range []string{"/top", "/top/a", "/top/b", "/top/a/unit", "/top/b/unit"} {
				h.makeIn(cgroup.CPU, path)
			}
			h.run("/top/a/unit", 10)
			h.run("/top/b/unit", 11)
			before := h.k.Snapshot()
			plans := map[string]Plan{}
			for _, c := range h.containers {
				plans[c.Group.Path] = must(t)(Make(h.facts(), c, Request{Kind: Pin, CPUs: 1}))
				h.apply(plans[c.Group.Path])
			}
			h.restore(first)
			delete(plans, first)
			for _, p := range plans {
				if wrong := h.exclusive(p.Target, p.CPUs); len(wrong) > 0 {
					t.Error(wrong)
				}
			}
			h.restore("")
			if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
				t.Error(diff)
			}
		})
	}
}

// inCpuset makes a cgroup with one process in both hierarchies.
func (h *host) inCpuset(path string, pid int) container.Container {
	h.t.Helper()
	h.make(path)
	return h.run(path, pid)
}
