package remedy

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// pidNamespace puts us into a PID namespace.
func (h *host) pidNamespace(inode uint64) {
	h.root["proc/self/ns/pid"] = &fstest.MapFile{Sys: &syscall.Stat_t{Ino: inode}}
}

const hostNamespace, otherNamespace = 4026531836, 4026532641

// v1 lists no process of another PID namespace, not even as 0.
func TestHiddenProcesses(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	h.makeIn(cgroup.CPU, "/unit")
	h.limit("/unit", 1)
	unit := h.contain("/unit")
	h.make("/own")
	h.limit("/own", 1)
	own := h.contain("/own")

	h.pidNamespace(hostNamespace)
	if p, err := Make(h.facts(), unit, Request{Kind: Pin}); err != nil || len(p.Warnings) == 0 {
		t.Fatalf("in the host's namespace: %v", err)
	}
	h.pidNamespace(otherNamespace)
	if why := refusal(t, h.facts(), unit, Request{Kind: Pin}).Error(); !strings.Contains(why, "hidden here") ||
		!strings.Contains(why, "hostPID: true") {
		t.Error(why)
	}
	p, err := Make(h.facts(), own, Request{Kind: Pin})
	if err != nil {
		t.Fatalf("one with a cpuset of its own needs no PIDs: %v", err)
	}
	for _, kind := range []Kind{Raise, Weight, Burst} {
		if _, err := Make(h.facts(), unit, Request{Kind: kind}); err != nil {
			t.Errorf("%s needs no PIDs: %v", kind, err)
		}
	}
	h.k.Spawn("/", 1)
	h.k.Spawn("/", 2)
	if p, err = Make(h.facts(), own, Request{Kind: Pin}); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(p.Warnings, "\n")
	if !strings.Contains(said, "cannot be counted here") || strings.Contains(said, "2 processes") {
		t.Errorf("said %q", said)
	}
	delete(h.root, "proc/self/ns/pid")
	if p, err = Make(h.facts(), unit, Request{Kind: Pin}); err != nil ||
		!slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, "cannot be told") }) {
		t.Errorf("namespace unknown: %v, %q", err, p.Warnings)
	}
}

// v2 lists them as 0, which is known already.
func TestNothingIsHiddenOnV2(t *testing.T) {
	h := newHost(t, cgroupmodel.V2("0-3"), t.TempDir())
	h.pidNamespace(otherNamespace)
	if f := h.facts(); f.HiddenProcesses || f.HiddenUnknown {
		t.Errorf("hidden %v, unknown %v", f.HiddenProcesses, f.HiddenUnknown)
	}
}

// Under the agent, in another namespace than the pin was made in: newcomers of
// the target are not moved, and that is said.
func TestUpkeepDoesNotMoveWhatIsHidden(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	h.makeIn(cgroup.CPU, "/unit")
	h.limit("/unit", 1)
	unit := h.run("/unit", 10)
	p, err := Make(h.facts(), unit, Request{Kind: Pin})
	if err != nil {
		t.Fatal(err)
	}
	h.apply(p)
	h.k.Spawn("/unit", 11)
	h.pidNamespace(otherNamespace)
	due := h.reconcile()
	if len(due) != 1 || !slices.ContainsFunc(due[0].Plan.Warnings,
		func(w string) bool { return strings.Contains(w, "cannot be seen here") }) {
		t.Fatalf("%+v", due)
	}
	for _, c := range due[0].Plan.Changes {
		if c.Kind == change.KindTask {
			t.Errorf("it would move: %+v", c)
		}
	}
}
