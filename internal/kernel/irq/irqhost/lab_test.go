package irqhost

import (
	"errors"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Runs only on the kernel of the lab's guest, because elsewhere a mistake would cost the machine. Some interrupts take
// another list and show it; the others refuse and keep theirs. The default list is accepted too. All get their previous
// lists again.
func TestInterruptsOfTheKernel(t *testing.T) {
	if !require.InLab() {
		t.Skip("needs v2: interrupts are moved in the lab's guest only; runs in the lab")
	}
	require.Root(t)
	require.CPUs(t, 2)
	h := New("/proc")
	interrupts, err := h.Interrupts()
	if err != nil {
		t.Fatal(err)
	}
	moved, refused := 0, 0
	for _, i := range interrupts {
		if i.CPUs.Size() < 2 {
			continue
		}
		file, ids := irq.File(i.Number), i.CPUs.List()
		last := cpuset.New(ids[len(ids)-1]).String()
		err := h.Write(file, last)
		got, readErr := h.Read(file)
		switch {
		case readErr != nil:
			t.Errorf("%s: %v", file, readErr)
		case errors.Is(err, irq.ErrRefused):
			if refused++; got != i.CPUs.String() {
				t.Errorf("%s: refused, but %s became %s", file, i.CPUs, got)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", file, err)
			continue
		case got != last:
			t.Errorf("%s: wrote %s, read %s", file, last, got)
		}
		moved++
		if err := h.Write(file, i.CPUs.String()); err != nil {
			t.Errorf("%s: back to %s: %v", file, i.CPUs, err)
		}
		if got, err := h.Read(file); got != i.CPUs.String() || err != nil {
			t.Errorf("%s: back to %s, but it is %s, %v", file, i.CPUs, got, err)
		}
	}
	t.Logf("of %d interrupts %d were moved, %d refused", len(interrupts), moved, refused)
	if moved == 0 {
		t.Error("not one could be moved")
	}
	before, err := h.Read(irq.Default)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Write(irq.Default, "0"); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Read(irq.Default); got != "0" || err != nil {
		t.Errorf("the default is %s, %v", got, err)
	}
	if err := h.Write(irq.Default, before); err != nil {
		t.Fatal(err)
	}
}
