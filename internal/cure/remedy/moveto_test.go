package remedy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// replace carries out plans at one moment.
func (h *host) replace(plans ...Plan) apply.Result {
	h.t.Helper()
	var parts []txn.Part
	for _, p := range plans {
		parts = append(parts, p.Part())
	}
	r, err := apply.Replace(context.Background(), h.env(), parts)
	if err != nil {
		h.t.Fatalf("%+v: %v", parts, err)
	}
	return r
}

// heldFor is the transaction in force for a target.
func (h *host) heldFor(path string) Held {
	h.t.Helper()
	for _, held := range decoded(h.t, h.facts()).Held {
		if held.Target == path && held.For == "" {
			return held
		}
	}
	h.t.Fatalf("nothing is in force for %s", path)
	return Held{}
}

// decoded reads facts, whose transactions in force are readable.
func decoded(t tester, host hoststate.Facts) facts {
	t.Helper()
	f, err := decode(host)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// watch checks at every operation that no task is without a CPU.
func (h *host) watch(t *testing.T) {
	h.k.Before = func(op cgroupmodel.Op) error {
		if wrong := h.k.Check(); op.Changes() && len(wrong) > 0 {
			t.Fatalf("before %s: %q", op, wrong)
		}
		return nil
	}
}

// A pin moves, newcomers and another pin beside it; whatever order they are
// restored in, all is as it was.
func TestMoveTo(t *testing.T) {
	for _, order := range [][]string{{"/a/web", "/a/db"}, {"/a/db", "/a/web"}} {
		onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
			db := h.containers[1]
			h.limit("/a/db", 2)
			before := h.k.Snapshot()
			h.watch(t)
			h.apply(must(t)(Make(h.facts(), web, Request{Kind: Pin, CPUs: 2})))
			h.apply(must(t)(Make(h.facts(), db, Request{Kind: Pin})))
			first, _ := pinnedCPUs(h.heldFor("/a/web"))
			held, _ := pinnedCPUs(h.heldFor("/a/db"))
			to := cpuset.New(6, 7)
			if first.Equals(to) || held.Equals(to) {
				t.Fatalf("chosen %s and %s", first, held)
			}
			p := must(t)(MoveTo(h.facts(), h.heldFor("/a/web").ID, to))
			r := h.replace(p)
			if len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "the affinity of threads") {
				t.Errorf("warnings %q", r.Warnings)
			}
			if now, _ := pinnedCPUs(h.heldFor("/a/web")); !now.Equals(to) {
				t.Errorf("the journal says %s", now)
			}
			if wrong := append(h.exclusive(web, to), h.exclusive(db, held)...); len(wrong) > 0 {
				t.Error(wrong)
			}
			if others, _ := h.k.Allowed(12); !others.Equals(parse(t, "0-7").Difference(to).Difference(held)) {
				t.Errorf("the others have %s: they should have the old CPUs back", others)
			}
			for _, d := range h.facts().Drift {
				t.Errorf("drift %+v", d)
			}
			for _, path := range order {
				h.restore(path)
			}
			if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
				t.Error(diff)
			}
		})
	}
}

// Resized in place: more CPUs, then fewer.
func TestMoveToAnotherSize(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
		before := h.k.Snapshot()
		h.watch(t)
		h.apply(must(t)(Make(h.facts(), web, Request{Kind: Pin, CPUs: 2})))
		for _, list := range []string{"2-5", "3", "3,6-7"} {
			to := parse(t, list)
			h.replace(must(t)(MoveTo(h.facts(), h.heldFor("/a/web").ID, to)))
			if wrong := h.exclusive(web, to); len(wrong) > 0 {
				t.Errorf("%s: %q", list, wrong)
			}
		}
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
}

// Two exclusive sets change places at one moment.
func TestMoveToExchange(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
		db := h.containers[1]
		before := h.k.Snapshot()
		h.watch(t)
		h.apply(must(t)(Make(h.facts(), web, Request{Kind: Pin, CPUs: 2})))
		h.apply(must(t)(Make(h.facts(), db, Request{Kind: Pin, CPUs: 2})))
		a, b := h.heldFor("/a/web"), h.heldFor("/a/db")
		atA, _ := pinnedCPUs(a)
		atB, _ := pinnedCPUs(b)
		if _, err := MoveTo(h.facts(), a.ID, atB); err == nil || !strings.Contains(err.Error(), "the pin of") {
			t.Errorf("onto another pin: %v", err)
		}
		p := must(t)(MoveTo(h.facts(), a.ID, atB, b.ID))
		q := must(t)(MoveTo(h.facts(), b.ID, atA, a.ID))
		if r := h.replace(p, q); len(r.IDs) != 2 || r.Took <= 0 {
			t.Errorf("%+v", r)
		}
		if wrong := append(h.exclusive(web, atB), h.exclusive(db, atA)...); len(wrong) > 0 {
			t.Error(wrong)
		}
		h.restore("/a/web")
		if wrong := h.exclusive(db, atA); len(wrong) > 0 {
			t.Error(wrong)
		}
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
}

// A narrowed container moves, and takes no other container's CPUs.
func TestMoveToFloating(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
		before := h.k.Snapshot()
		h.apply(must(t)(Make(h.facts(), web, Request{Kind: Narrow, CPUs: 2})))
		h.replace(must(t)(MoveTo(h.facts(), h.heldFor("/a/web").ID, cpuset.New(0, 7))))
		if now, _ := h.k.Allowed(10); now.String() != "0,7" {
			t.Errorf("it has %s", now)
		}
		if now, _ := h.k.Allowed(11); now.Size() != 8 {
			t.Errorf("the neighbour has %s", now)
		}
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
}

// A newcomer that was moved off the old CPUs gets them back and leaves the new
// ones; a container without a cpuset of its own keeps the one made for it.
func TestMoveToWithNewcomersAndMadeSets(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-7"), t.TempDir())
	h.makeIn(cgroup.CPU, "/unit")
	h.limit("/unit", 1)
	unit := h.run("/unit", 10)
	before := h.k.Snapshot().Settings()
	h.watch(t)
	p := must(t)(Make(h.facts(), unit, Request{Kind: Pin}))
	h.apply(p)
	h.make("/new")
	h.run("/new", 20)

	for _, c := range h.reconcile() {
		h.apply(c.Plan)
	}
	unit.Group.CPUSetPath = p.Parameters[paramSet]
	h.containers[0] = unit
	to := cpuset.New(7)
	h.k.Fork(10, 11)
	move := must(t)(MoveTo(h.facts(), h.heldFor("/unit").ID, to))
	if len(move.Replaces) != 2 {
		t.Errorf("replaces %q: want the pin and what was done for newcomers", move.Replaces)
	}
	h.replace(move)
	if wrong := h.exclusive(unit, to); len(wrong) > 0 {
		t.Error(wrong)
	}
	if now, _ := h.k.Allowed(20); now.String() != "0-6" {
		t.Errorf("the newcomer has %s", now)
	}
	if n := len(h.facts().Held); n != 1 {
		t.Errorf("%d transactions are in force", n)
	}
	if left := h.reconcile(); len(left) > 0 {
		t.Errorf("still to do: %+v", left)
	}
	h.k.Exit(11)
	h.restore("")
	for _, line := range before.Diff(h.k.Snapshot().Settings()) {
		if !strings.Contains(line, "/new") {
			t.Error(line)
		}
	}
	if now, _ := h.k.Allowed(20); now.String() != "0-7" {
		t.Errorf("restored, the newcomer has %s", now)
	}
}

func TestMoveToRefuses(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
		h.shares("/a/db", 5*1024)
		h.apply(must(t)(Make(h.facts(), web, Request{Kind: Pin, CPUs: 2})))
		id := h.heldFor("/a/web").ID
		for list, want := range map[string]string{"": "no CPUs were given", "8": "offline", "0": "the reserve", "2-7": "would be left"} {
			_, err := MoveTo(h.facts(), id, parse(t, list))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("to %q: %v, want %q", list, err, want)
			}
		}
		if _, err := MoveTo(h.facts(), "nothing", cpuset.New(3)); err == nil || !strings.Contains(err.Error(), "plan again") {
			t.Error(err)
		}
		f := h.facts()
		f.Claims = append(f.Claims, hoststate.Claim{CPUs: cpuset.New(5), By: "the kubelet"})
		if _, err := MoveTo(f, id, cpuset.New(4, 5)); err == nil || !strings.Contains(err.Error(), "the kubelet has them") {
			t.Error(err)
		}
		h.restore("")
		h.apply(must(t)(Make(h.facts(), web, Request{Kind: Weight})))
		if _, err := MoveTo(h.facts(), h.heldFor("/a/web").ID, cpuset.New(3)); err == nil ||
			!strings.Contains(err.Error(), "gave no CPUs") {
			t.Error(err)
		}
	})
}

// A manager whose state is not known has all CPUs.
func TestPinRefusesWhatAManagerMayHave(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
		f := h.facts()
		f.Claims = append(f.Claims, hoststate.Claim{CPUs: f.Machine.Online(), By: "the kubelet, whose state is not known,"})
		var refused *Refused
		if _, err := Make(f, web, Request{Kind: Pin, CPUs: 2}); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), "the kubelet, whose state is not known, has ") {
			t.Error(err)
		}
	})
}

func TestAReserveThatIsNotThereIsRefused(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
		for reserve, want := range map[string]string{"0-1": "", "8": "8, which are not there or offline: 0-7 are online"} {
			set := parse(t, reserve)
			_, state := State(h.facts(), &set, nil)
			_, plan := Make(h.facts(), web, Request{Kind: Pin, CPUs: 2, Reserve: &set})
			for _, err := range []error{state, plan} {
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("reserve %s: %v", reserve, err)
				}
			}
		}
	})
}
