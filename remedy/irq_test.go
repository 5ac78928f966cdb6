package remedy

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/change"
	"github.com/unthrottle/unthrottle/container"
	"github.com/unthrottle/unthrottle/irq"
	"github.com/unthrottle/unthrottle/topology"
)

func TestPinKeepsInterruptsOff(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		plain, err := Make(h.facts(), target, Request{Kind: Pin})
		if err != nil {
			t.Fatal(err)
		}
		others := cpuset.New(0, 1, 2, 3, 4, 5, 6, 7).Difference(plain.CPUs)
		found := Interrupts{Default: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7), Balanced: true, All: []irq.Interrupt{
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

func TestIRQBalanceIsNoticed(t *testing.T) {
	root := fstest.MapFS{"proc/1/comm": {Data: []byte("init\n")}, "proc/irq/7/x": {}}
	if running(root, "irqbalance") {
		t.Error("noticed where it is not")
	}
	root["proc/30/comm"] = &fstest.MapFile{Data: []byte("irqbalance\n")}
	if !running(root, "irqbalance") {
		t.Error("not noticed")
	}
}
