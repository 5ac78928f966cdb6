package remedy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Idle weight and no quota. The restore sets the weight it had, which the kernel itself
// would not remember.
func TestSecondary(t *testing.T) {
	for _, noIdle := range []bool{false, true} {
		for _, strict := range []bool{false, true} {
			for name, config := range configs("0-3") {
				config.NoIdle = noIdle
				h := newHost(t, config, t.TempDir())
				h.hand("/", cgroup.CPU, cgroup.CPUSet)
				for _, path := range []string{"/web", "/db"} {
					h.make(path)
				}
				h.limit("/web", 1)
				h.shares("/web", 512)
				web := h.run("/web", 10)
				h.run("/db", 11)
				before := h.k.Snapshot()
				p := must(t)(Make(h.facts(), web, Request{Kind: Secondary, Strict: strict}))
				h.apply(p)
				want := map[bool]string{false: cgroup.WeightIdle, true: cgroup.SharesWrite(h.v, cgroup.MinShares).Value}[noIdle]
				if got, err := cgroup.ReadWeight(h.k, "/web"); err != nil || got != want {
					t.Errorf("%s: weight %q, %v, want %q", name, got, err, want)
				}
				if l, err := cgroup.ReadLimit(h.k, "/web"); err != nil || l.Limited() != strict {
					t.Errorf("%s: limit %+v, %v, strict %v", name, l, err, strict)
				}
				if got := strings.Contains(strings.Join(p.Warnings, "; "), "no cpu.idle"); got != noIdle {
					t.Errorf("%s: warnings %q", name, p.Warnings)
				}
				h.restore("")
				if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
					t.Errorf("%s: %q", name, diff)
				}
			}
		}
	}
}

// Weights compare siblings. The level above becomes idle too where no other container is
// at work in it and it is ours. Otherwise the plan names those to which it does not give
// way.
func TestSecondaryInItsPod(t *testing.T) {
	onEach(t, "0-3", func(t *testing.T, h *host, web container.Container) {
		p := must(t)(Make(h.facts(), web, Request{Kind: Secondary}))
		if said := strings.Join(p.Warnings, "; "); !strings.Contains(said, "gives way to what is in /a") ||
			!strings.Contains(said, "/slice") {
			t.Errorf("warnings %q", said)
		}
		h.options.Named = "/"
		p = must(t)(Make(h.facts(), web, Request{Kind: Secondary}))
		if p.changes("/a") {
			t.Error("/a/db is at work in /a: it must not become idle")
		}
		h.k.Exit(11)
		h.apply(must(t)(Make(h.facts(), web, Request{Kind: Secondary})))
		if idle, err := cgroup.ReadIdle(h.k, "/a"); err != nil || !idle {
			t.Errorf("/a: idle %v, %v", idle, err)
		}
	})
}

func (p Plan) changes(path string) bool {
	for _, c := range p.Changes {
		if c.Path == path {
			return true
		}
	}
	return false
}

// The secondary alone may use what a pin shares, whichever of the two came first, and
// whichever goes first.
func TestLending(t *testing.T) {
	for _, first := range []Kind{Pin, Secondary} {
		for _, goes := range []string{"/a/web", "/a/db"} {
			onEach(t, "0-3", func(t *testing.T, h *host, web container.Container) {
				db := h.containers[1]
				before := h.k.Snapshot()
				h.watch(t)
				var pin Plan
				for range 2 {
					if first == Pin {
						pin = must(t)(Make(h.facts(), web, Request{Kind: Pin, Shares: true}))
						h.apply(pin)
						first = Secondary
						continue
					}
					h.apply(must(t)(Make(h.facts(), h.refresh(db), Request{Kind: Secondary})))
					first = Pin
				}
				h.upkeep()
				own, _ := h.k.Allowed(10)
				borrowed, _ := h.k.Allowed(11)
				other, _ := h.k.Allowed(12)
				set := parse(t, "0-3")
				if !own.Equals(pin.CPUs) || !borrowed.Equals(set) || !other.Equals(set.Difference(pin.CPUs)) {
					t.Errorf("the owner may use %s, the secondary %s, others %s", own, borrowed, other)
				}
				if due := h.reconcile(); len(due) > 0 {
					t.Errorf("still to do: %+v", due)
				}
				// A newcomer in the level that the CPUs were given back to.
				h.make("/a/new")
				h.run("/a/new", 13)
				h.upkeep()
				if fresh, _ := h.k.Allowed(13); !fresh.Intersection(pin.CPUs).IsEmpty() {
					t.Errorf("a newcomer may use %s", fresh)
				}
				h.restore(goes)
				if now, _ := h.k.Allowed(11); goes == "/a/db" && !now.Intersection(pin.CPUs).IsEmpty() {
					t.Errorf("secondary no more, it may use %s", now)
				}
				h.restore("")
				h.k.Exit(13)
				h.remove("/a/new")
				if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
					t.Error(diff)
				}
			})
		}
	}
}

// A lender comes after the secondary, where nothing hands the cpuset controller down to it (v2): the
// siblings get cpusets too, so that they do not inherit what is lent.
func TestLendingWhereNoCpusetIs(t *testing.T) {
	h := newHost(t, configs("0-7")["v2"], t.TempDir())
	h.hand("/", cgroup.CPU)
	h.make("/pod")
	h.hand("/pod", cgroup.CPU)
	for _, path := range []string{"/owner", "/pod/batch", "/pod/beside"} {
		h.make(path)
	}
	owner, batch := h.run("/owner", 10), h.run("/pod/batch", 11)
	h.run("/pod/beside", 12)
	before := h.k.Snapshot()
	h.apply(must(t)(Make(h.facts(), batch, Request{Kind: Secondary})))
	pin := must(t)(Make(h.facts(), owner, Request{Kind: Pin, CPUs: 2, Shares: true}))
	h.apply(pin)
	h.upkeep()
	set := parse(t, "0-7")
	for pid, want := range map[int]cpuset.CPUSet{10: pin.CPUs, 11: set, 12: set.Difference(pin.CPUs)} {
		if now, _ := h.k.Allowed(pid); !now.Equals(want) {
			t.Errorf("pid %d may use %s, want %s", pid, now, want)
		}
	}
	if due := h.reconcile(); len(due) > 0 {
		t.Errorf("still to do: %+v", due)
	}
	h.restore("")
	if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
		t.Error(diff)
	}
}

// What a secondary borrows its children inherit (v2): they are no newcomers on the lender's CPUs.
func TestLendingToAnInnerCgroup(t *testing.T) {
	h := newHost(t, configs("0-7")["v2"], t.TempDir())
	h.hand("/", cgroup.CPU)
	h.make("/batch")
	h.hand("/batch", cgroup.CPU)
	h.make("/owner")
	h.make("/batch/job")
	owner := h.run("/owner", 10)
	h.run("/batch/job", 11)
	h.apply(must(t)(Make(h.facts(), owner, Request{Kind: Pin, CPUs: 2, Shares: true})))
	h.apply(must(t)(Make(h.facts(), h.at("/batch"), Request{Kind: Secondary})))
	if due := h.reconcile(); len(due) > 0 {
		t.Errorf("to do: %+v", due)
	}
	if now, _ := h.k.Allowed(11); !now.Equals(parse(t, "0-7")) {
		t.Errorf("the child may use %s", now)
	}
}

// An owner that did not say so lends nothing.
func TestNoLendingUnasked(t *testing.T) {
	onEach(t, "0-3", func(t *testing.T, h *host, web container.Container) {
		pin := must(t)(Make(h.facts(), web, Request{Kind: Pin}))
		h.apply(pin)
		h.apply(must(t)(Make(h.facts(), h.refresh(h.containers[1]), Request{Kind: Secondary})))
		h.upkeep()
		if wrong := h.exclusive(web, pin.CPUs); len(wrong) > 0 {
			t.Error(wrong)
		}
	})
}

// An owner that moves lends its new CPUs.
func TestLendingFollows(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
		pin := must(t)(Make(h.facts(), web, Request{Kind: Pin, Shares: true}))
		h.apply(pin)
		h.apply(must(t)(Make(h.facts(), h.refresh(h.containers[1]), Request{Kind: Secondary})))
		to := cpuset.New(7)
		if pin.CPUs.Equals(to) {
			to = cpuset.New(5)
		}
		h.replace(must(t)(MoveTo(h.facts(), h.heldFor("/a/web").ID, to)))
		h.upkeep()
		if now, _ := h.k.Allowed(11); !now.Equals(parse(t, "0-7")) {
			t.Errorf("the secondary may use %s", now)
		}
		if now, _ := h.k.Allowed(12); !now.Equals(parse(t, "0-7").Difference(to)) {
			t.Errorf("the others may use %s", now)
		}
	})
}

// Killed before any of its writes, one restore brings every byte back; the
// weight lies in two files, so that it has a state in between.
func TestSecondaryKilledAnywhere(t *testing.T) {
	killed := errors.New("killed")
	for point := 0; ; point++ {
		reached := 0
		onEach(t, "0-3", func(t *testing.T, h *host, web container.Container) {
			h.shares("/a/db", 300)
			before := h.k.Snapshot()
			h.apply(must(t)(Make(h.facts(), web, Request{Kind: Pin, Shares: true})))
			p := must(t)(Make(h.facts(), h.refresh(h.containers[1]), Request{Kind: Secondary}))
			n := 0
			h.k.Before = func(op cgroupmodel.Op) error {
				if !op.Changes() {
					return nil
				}
				if n++; n > point {
					panic(killed)
				}
				return nil
			}
			run := func(do func()) {
				defer func() {
					if what := recover(); what != nil && what != killed {
						panic(what)
					}
				}()
				do()
			}
			run(func() {
				h.apply(p)
				if _, err := apply.Restore(context.Background(), h.env(), apply.Selector{}); err != nil {
					t.Error(err)
				}
			})
			reached = max(reached, n)
			h.k.Before = nil
			if res := h.restore(""); len(res.Skipped) > 0 && !h.noClear {
				t.Errorf("killed at %d: skipped %+v", point, res.Skipped)
			}
			if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 && !h.noClear {
				t.Errorf("killed at %d: %q", point, diff)
			}
		})
		if reached <= point {
			return
		}
	}
}

func TestSecondaryRefuses(t *testing.T) {
	onEach(t, "0-3", func(t *testing.T, h *host, web container.Container) {
		h.apply(must(t)(Make(h.facts(), web, Request{Kind: Pin})))
		db := h.refresh(h.containers[1])
		for _, tc := range []struct {
			target container.Container
			r      Request
			want   string
		}{
			{h.refresh(web), Request{Kind: Secondary}, "in force already"},
			{db, Request{Kind: Secondary, Shares: true}, "only a pin lends"},
			{db, Request{Kind: Secondary, Class: ClassHybrid}, "no class"},
		} {
			if refused := refusal(t, h.facts(), tc.target, tc.r); !strings.Contains(refused.Error(), tc.want) {
				t.Errorf("%+v: %v, want %q", tc.r, refused, tc.want)
			}
		}
	})
}

// upkeep does what is to be done, as the agent does.
func (h *host) upkeep() {
	h.t.Helper()
	for range 3 {
		for _, c := range h.reconcile() {
			if len(c.Plan.Changes) > 0 {
				h.apply(c.Plan)
			}
		}
	}
}

// On the real kernel: a secondary of the same default weight beside a busy
// primary on the same CPU. The primary's CPU time is unharmed; while it sleeps,
// the secondary has the CPU.
func TestSecondaryOnTheKernel(t *testing.T) {
	require.Alone(t, "what the target uses with a secondary beside it and without")
	require.EachCgroup(t, "the cpusets and limits that are written")
	r := newReal(t)
	r.Limit(r.Top+"/pod", 100)
	r.Limit(r.target, 1)
	r.Limit(r.neighbour, 100)
	before := r.Settings()
	pin, err := r.plan(r.target, Request{Kind: Pin, Shares: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apply.Apply(context.Background(), r.env(), pin.Purpose(), pin.Changes); err != nil {
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
	over := func(d time.Duration) (own, other time.Duration) {
		time.Sleep(100 * time.Millisecond)
		own, other = used(r.target), used(r.neighbour)
		time.Sleep(d)
		return used(r.target) - own, used(r.neighbour) - other
	}
	tell := func(path string, signal unix.Signal) {
		if err := unix.Kill(r.pids[path], signal); err != nil {
			t.Fatal(err)
		}
	}
	p, err := r.plan(r.neighbour, Request{Kind: Secondary})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apply.Apply(context.Background(), r.env(), p.Purpose(), p.Changes); err != nil {
		t.Fatal(err)
	}
	if len(p.Lenders) != 1 || p.Parameters[paramBorrowed] != pin.CPUs.String() {
		t.Fatalf("lent %q by %q, warnings %q", p.Parameters[paramBorrowed], p.Lenders, p.Warnings)
	}
	// By turns, so that other load on the host meets both alike.
	const unharmed = 0.95
	var alone, beside, secondary time.Duration
	for range 3 {
		alone, beside, secondary = 0, 0, 0
		for range 4 {
			tell(r.neighbour, unix.SIGSTOP)
			own, _ := over(500 * time.Millisecond)
			tell(r.neighbour, unix.SIGCONT)
			with, other := over(500 * time.Millisecond)
			alone, beside, secondary = alone+own, beside+with, secondary+other
		}
		if float64(beside) >= unharmed*float64(alone) {
			break
		}
	}
	t.Logf("alone on %s it used %v in 2 s, beside the secondary %v, which used %v", pin.CPUs, alone, beside, secondary)
	if float64(beside) < unharmed*float64(alone) {
		t.Errorf("the owner used %v, alone it was %v", beside, alone)
	}
	// The owner rests: the secondary has the CPU at once.
	tell(r.target, unix.SIGSTOP)
	idle, gained := over(2 * time.Second)
	tell(r.target, unix.SIGCONT)
	t.Logf("while the owner rests (%v) the secondary uses %v", idle, gained)
	// On idle CPUs the secondary had all that it wants before, and gains nothing.
	starved := secondary < time.Second
	if idle > 100*time.Millisecond || starved && gained < secondary+200*time.Millisecond {
		t.Errorf("while the owner rests (%v) the secondary uses %v, before %v", idle, gained, secondary)
	}
	r.takeBack(before)
}

// Shared CPUs can be revoked from every secondary, and shared again. Meanwhile neither
// reconciling nor a new secondary shares them. Where the owner moves, it shares what it
// has then.
// sharings are what pins in force share.
func (h *host) sharings() []Sharing {
	h.t.Helper()
	all, err := Sharings(h.facts().Held)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func TestWithholding(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, web container.Container) {
		before := h.k.Snapshot()
		h.watch(t)
		pin := must(t)(Make(h.facts(), web, Request{Kind: Pin, Shares: true}))
		h.apply(pin)
		later := must(t)(Make(h.facts(), h.refresh(h.containers[1]), Request{Kind: Secondary, GrantLater: true}))
		if len(later.Lenders) > 0 || later.Parameters[paramBorrowed] != "" {
			t.Errorf("lent at once: %+v", later)
		}
		h.apply(later)
		owner := func() Held { return h.heldFor("/a/web") }
		lend := func(want string, to ...string) {
			t.Helper()
			got := h.sharings()
			if len(got) != 1 || got[0].Target != "/a/web" || strings.Join(got[0].To, ",") != strings.Join(to, ",") ||
				got[0].CPUs.String() != want {
				t.Fatalf("lends %+v, want %s to %q", got, want, to)
			}
			state := h.placement(h.facts())
			if len(state.Containers) != 2 {
				t.Errorf("the state %+v", state.Containers)
			}
			for _, c := range state.Containers {
				if second := c.Name == "/a/db"; second != (c.Class == placement.Secondary) ||
					c.SharesIdle != (!second && got[0].Revoked == "") {
					t.Errorf("in the state %+v", c)
				}
			}
		}
		lend(pin.CPUs.String())
		h.upkeep()
		lend(pin.CPUs.String(), "/a/db")
		set := parse(t, "0-7")
		may := func(want cpuset.CPUSet) {
			t.Helper()
			if now, _ := h.k.Allowed(11); !now.Equals(want) {
				t.Fatalf("the secondary may use %s, want %s", now, want)
			}
			if now, _ := h.k.Allowed(12); !now.Equals(set.Difference(parse(t, owner().Parameters[paramCPUs]))) {
				t.Fatalf("the others may use %s", now)
			}
		}
		may(set)
		back := h.revoke(owner().ID)
		h.apply(back)
		may(set.Difference(pin.CPUs))
		h.upkeep()
		may(set.Difference(pin.CPUs))
		if again := h.revoke(owner().ID); len(again.Changes) > 0 {
			t.Errorf("revoked twice: %+v", again.Changes)
		}
		lent := h.sharings()[0]
		if lent.Revoked == "" {
			t.Fatal("the owner is not marked as revoked")
		}
		if _, err := apply.Restore(context.Background(), h.env(), apply.Selector{IDs: []string{lent.Revoked}}); err != nil {
			t.Fatal(err)
		}
		may(set)
		h.upkeep()
		may(set)
		h.apply(h.revoke(owner().ID))
		to := cpuset.New(7)
		if pin.CPUs.Equals(to) {
			to = cpuset.New(5)
		}
		h.replace(must(t)(MoveTo(h.facts(), owner().ID, to)))
		h.upkeep()
		may(set)
		lend(to.String(), "/a/db")
		h.apply(h.revoke(owner().ID))
		h.restore("/a/db")
		may(set.Difference(to))
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
}
