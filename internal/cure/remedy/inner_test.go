package remedy

import (
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
)

// A cgroup with children, named by its path, is a target as well, though no
// list of containers has it.
func TestTargetThatIsNoLeaf(t *testing.T) {
	for _, kind := range Kinds() {
		if kind == Cap { // of a sibling: TestCapOfASibling
			continue
		}
		onEach(t, "0-3", func(t *testing.T, h *host, leaf container.Container) {
			h.limit("/a", 1.5)
			before := h.k.Snapshot()
			inner := container.Container{Name: "a", Group: cgroup.Group{Path: "/a", CPUSetPath: "/a", CPUAcctPath: "/a"}}
			p, err := Make(h.facts(), inner, Request{Kind: kind})
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			h.apply(p)
			if kind == Pin {
				if p.CPUs.Size() != 2 || len(p.Moved) != 1 || p.Moved[0] != "/slice" {
					t.Errorf("pinned to %s, moved %q", p.CPUs, p.Moved)
				}
				if wrong := h.exclusive(inner, p.CPUs); len(wrong) > 0 {
					t.Error(wrong)
				}
				if !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, "quotas of their own: /a/web") }) {
					t.Errorf("the quota inside is not named: %q", p.Warnings)
				}
			}
			h.restore("")
			if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
				t.Error(diff)
			}
		})
	}
}

// A slice of the cpu hierarchy only: all that is below it moves into its cpuset.
func TestSliceWithoutACpuset(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	for _, path := range []string{"/s", "/s/a", "/s/b", "/t"} {
		h.makeIn(cgroup.CPU, path)
	}
	h.limit("/s", 1)
	for i, path := range []string{"/s/a", "/s/b", "/t"} {
		h.run(path, 10+i)
	}
	slice := container.Container{Name: "s", Group: cgroup.Group{Path: "/s", CPUSetPath: "/", CPUAcctPath: "/s"}}
	p, err := Make(h.facts(), slice, Request{Kind: Pin})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.HasPrefix(w, "1 process in the root") }) {
		t.Errorf("one stays, two move: %q", p.Warnings)
	}
	h.apply(p)
	if wrong := h.exclusive(slice, p.CPUs); len(wrong) > 0 {
		t.Error(wrong)
	}
	h.k.Spawn("/s/a", 20)
	slice.Group.CPUSetPath = p.Parameters[paramSet]
	if why := refusal(t, h.facts(), slice, Request{Kind: Pin}).Error(); !strings.Contains(why, "in force already") {
		t.Error(why)
	}
}

// A pod whose containers share a cpuset with another pod's owns none; one whose
// containers have it to themselves does.
func TestOwnSetOfANonLeaf(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	for _, path := range []string{"/p", "/p/a", "/q"} {
		h.make(path)
	}
	h.run("/p/a", 10)
	h.run("/q", 11)
	p := &planner{target: container.Container{Group: cgroup.Group{Path: "/p", CPUSetPath: "/p"}}, f: decoded(t, h.facts())}
	if !p.ownSet() {
		t.Error("/p holds only its own")
	}
	if err := h.k.Attach(cgroup.CPUSet, "/p/a", 11); err != nil {
		t.Fatal(err)
	}
	if p.f = decoded(t, h.facts()); p.ownSet() {
		t.Error("/p/a holds a process of /q")
	}
}

// On v2 a controller enabled in a cgroup that holds processes makes it threaded
// and its children invalid: refused, naming it, also for our own kind of plan.
func TestControllersAreNotHandedDownAmongProcesses(t *testing.T) {
	f := tree(t, cgroup.V2, map[string]float64{"/a": 0, "/a/b": 0, "/a/b/c": 1})
	s := f.Sets["/a"]
	s.Procs = 2
	f.Sets["/a"] = s
	if why := refusal(t, f, target("/a/b/c", ""), Request{Kind: Pin}); !strings.Contains(why.Error(),
		"/a above it holds 2 processes itself") ||
		!slices.Equal(why.Names, []string{"/a"}) {
		t.Error(why)
	}
	f.OneTree, f.CPUVersion = false, cgroup.V1
	f.Containers = []hoststate.Container{{Container: target("/a/b/c", ""), OwnSet: true}}
	if why := refusal(t, f, target("/a/b/c", ""), Request{Kind: Pin}); !slices.Equal(why.Names, []string{"/a"}) {
		t.Error(why)
	}
	f.OneTree, f.CPUVersion = true, cgroup.V2
	p := &planner{f: decoded(t, f), r: Request{Kind: Pin}, target: target("/a/b/c", "")}
	if err := p.enable(targetCpuset{path: "/a/b/c"}); err == nil || !strings.Contains(err.Error(), "/a above it holds 2 processes") {
		t.Errorf("enable: %v", err)
	}
}

// On v2 a set whose own CPUs are all taken from its parent runs on the parent's
// others, here on those of another pin. So it counts as left without a CPU.
func TestInnerSetKeepsACPU(t *testing.T) {
	h := newHost(t, cgroupmodel.V2("0-5"), t.TempDir())
	targets := map[string]container.Container{}
	for _, path := range []string{"/", "/s", "/s/p", "/s/p/web", "/s/p/db", "/s/q"} {
		if path != "/" {
			h.make(path)
		}
		if path == "/" || path == "/s" || path == "/s/p" {
			h.hand(path, cgroup.CPU, cgroup.CPUSet)
			continue
		}
		h.limit(path, 1)
		targets[path] = h.run(path, 10+len(targets))
	}
	h.limit("/s/p/web", 2)
	h.write(cgroup.CPUSet, "/s", cgroup.FileCPUs, "2-4")
	p, err := Make(h.facts(), targets["/s/p/web"], Request{Kind: Pin})
	if err != nil {
		t.Fatal(err)
	}
	h.apply(p)
	if _, err := Make(h.facts(), targets["/s/q"], Request{Kind: Pin}); err == nil ||
		!strings.Contains(err.Error(), "/s/p/db may use only 4 and would be left without a CPU") {
		t.Errorf("%v", err)
	}
}

// What a secondary borrows goes into every cpuset above it, so inside a pin it would
// widen the pin onto another owner's CPUs.
func TestNoSecondaryInsideAPin(t *testing.T) {
	h := newHost(t, cgroupmodel.V2("0-7"), t.TempDir())
	h.hand("/", cgroup.CPU, cgroup.CPUSet)
	h.make("/pod")
	h.hand("/pod", cgroup.CPU, cgroup.CPUSet)
	h.make("/pod/batch")
	h.make("/owner")
	h.limit("/pod", 1)
	h.limit("/owner", 1)
	batch, owner := h.run("/pod/batch", 10), h.run("/owner", 11)
	pod := container.Container{Name: "pod", Group: cgroup.Group{Path: "/pod", CPUSetPath: "/pod", CPUAcctPath: "/pod"}}
	for _, target := range []struct {
		container.Container
		shares bool
	}{{pod, false}, {owner, true}} {
		p, err := Make(h.facts(), target.Container, Request{Kind: Pin, Shares: target.shares})
		if err != nil {
			t.Fatal(err)
		}
		h.apply(p)
	}
	_, err := Make(h.facts(), batch, Request{Kind: Secondary})
	if err == nil || !strings.Contains(err.Error(), "it lies inside /pod, which has exclusive CPUs") {
		t.Errorf("%v", err)
	}
}

// A cpuset of v2 that names only CPUs that its parent lacks runs on the parent's. Pinned
// and restored, it would run on those of a pin that came meanwhile.
func TestNoPinOfASetThatRunsElsewhere(t *testing.T) {
	h := newHost(t, cgroupmodel.V2("0-7"), t.TempDir())
	h.hand("/", cgroup.CPU, cgroup.CPUSet)
	h.make("/p")
	h.hand("/p", cgroup.CPU, cgroup.CPUSet)
	h.make("/p/web")
	h.limit("/p/web", 1)
	target := h.run("/p/web", 10)
	h.write(cgroup.CPUSet, "/p", cgroup.FileCPUs, "0-3")
	h.write(cgroup.CPUSet, "/p/web", cgroup.FileCPUs, "4")
	if _, err := Make(h.facts(), target, Request{Kind: Pin}); err == nil ||
		!strings.Contains(err.Error(), "it was given 4, none of which its parent has, so it runs on 0-3 instead") {
		t.Errorf("%v", err)
	}
}
