package remedy

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/topology"
)

func TestPinKeepsInterruptsOff(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		plain, err := Make(h.facts(), target, Request{Kind: Pin})
		if err != nil {
			t.Fatal(err)
		}
		others := cpuset.New(0, 1, 2, 3, 4, 5, 6, 7).Difference(plain.CPUs)
		found := hoststate.Interrupts{Default: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7), Balanced: true, All: []irq.Interrupt{
			{Number: 1, CPUs: others}, {Number: 2, CPUs: plain.CPUs}, {Number: 3, CPUs: plain.CPUs.Union(cpuset.New(0))}}}
		p, err := Make(h.facts(), target, Request{Kind: Pin, Interrupts: &found})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]change.Change{}
		for _, c := range p.Changes {
			if c.Kind == change.KindIRQ {
				got[c.File] = c
			}
		}
		if len(got) != 3 || got[irq.Default].Op != change.OpRemoveCPUs || got[irq.File(3)].To != p.CPUs.String() {
			t.Errorf("changes %+v", got)
		}
		left, err := topology.ParseList(got[irq.File(2)].To)
		if err != nil || got[irq.File(2)].Op != change.OpSet || left.IsEmpty() || !left.Intersection(p.CPUs).IsEmpty() {
			t.Errorf("an interrupt that had nothing else: %+v, %v", got[irq.File(2)], err)
		}
		if !strings.Contains(strings.Join(p.Warnings, "\n"), "IRQBALANCE_BANNED_CPULIST="+p.CPUs.String()) {
			t.Errorf("irqbalance is not named: %v", p.Warnings)
		}
		scoped := h.facts()
		scoped.Scope = "/a"
		var no *Refused
		for _, f := range []func() error{
			func() error { _, err := Make(scoped, target, Request{Kind: Pin, Interrupts: &found}); return err },
			func() error { _, err := Make(h.facts(), target, Request{Kind: Burst, Interrupts: &found}); return err },
		} {
			if err := f(); !errors.As(err, &no) || !strings.Contains(err.Error(), "--irqs") {
				t.Errorf("not refused: %v", err)
			}
		}
	})
}

// A pin that keeps interrupts off moves, and they follow: back on the old CPUs, off the
// new ones. One that had no others goes to CPUs that are not exclusive. Another pin's
// are left as they are. After the restore all is as it was.
func TestInterruptsFollow(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		set := cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)
		fake := &fakeIRQ{lists: map[string]cpuset.CPUSet{irq.Default: set, irq.File(1): set, irq.File(2): cpuset.New(6),
			irq.File(3): cpuset.New(2, 3), irq.File(4): cpuset.New(0)}}
		h.options.IRQ, h.irq = fake, fake
		before, lists := h.k.Snapshot(), maps.Clone(fake.lists)
		found, err := gather.Interrupts(fake, h.root)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Make(h.facts(), target, Request{Kind: Pin, Interrupts: &found})
		if err != nil {
			t.Fatal(err)
		}
		h.apply(p)
		found, err = gather.Interrupts(fake, h.root)
		if err != nil {
			t.Fatal(err)
		}
		other, err := Make(h.facts(), h.containers[1], Request{Kind: Pin, CPUs: 1, Interrupts: &found})
		if err != nil {
			t.Fatal(err)
		}
		h.apply(other)
		check := func(pinned cpuset.CPUSet) {
			t.Helper()
			taken := pinned.Union(other.CPUs)
			for file, list := range fake.lists {
				want := lists[file].Difference(taken)
				if want.IsEmpty() {
					want = set.Difference(taken)
				}
				// Of the one that had nothing but both pins' CPUs the later one's list may stand.
				both := file == irq.File(3) && !list.IsEmpty() && list.Intersection(taken).IsEmpty()
				if !list.Equals(want) && !both {
					t.Errorf("%s goes to %s, want %s beside %s", file, list, want, taken)
				}
			}
		}
		check(p.CPUs)
		state := h.placement(h.facts())
		if state.Containers[0].Immovable != "" {
			t.Errorf("it is not moved: %s", state.Containers[0].Immovable)
		}
		for _, to := range []cpuset.CPUSet{cpuset.New(6), cpuset.New(7)} {
			move, err := MoveTo(h.facts(), h.heldFor(target.Group.Path).ID, to)
			if err != nil {
				t.Fatal(err)
			}
			h.replace(move)
			check(to)
		}
		unread := h.facts()
		unread.Interrupts = nil
		if why := h.placement(unread).Containers[0].Immovable; !strings.Contains(why, "cannot be read") {
			t.Errorf("it stays because %q", why)
		}
		if _, err := MoveTo(unread, h.heldFor(target.Group.Path).ID, cpuset.New(6)); err == nil {
			t.Error("it was moved and its interrupts were not")
		}
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 || fmt.Sprint(fake.lists) != fmt.Sprint(lists) {
			t.Error(diff, fake.lists)
		}
	})
}

// fakeIRQ are interrupts that do as they are told.
type fakeIRQ struct{ lists map[string]cpuset.CPUSet }

func (f *fakeIRQ) Interrupts() ([]irq.Interrupt, error) {
	var interrupts []irq.Interrupt
	for n := range 10 {
		if set, ok := f.lists[irq.File(n)]; ok {
			interrupts = append(interrupts, irq.Interrupt{Number: n, CPUs: set})
		}
	}
	return interrupts, nil
}

func (f *fakeIRQ) Read(file string) (string, error) { return f.lists[file].String(), nil }

func (f *fakeIRQ) Write(file, list string) error {
	set, err := topology.ParseList(list)
	f.lists[file] = set
	return err
}

func (f *fakeIRQ) ID(string) (uint64, error) { return 1, nil }
