package probe

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/wait"
)

// claimed is HELD_CLAIMED of bpf/probe.h.
const claimed = ^uint64(0)

// TestClaimedEntriesAreLeftAlone checks that while one program writes an entry of held, no other takes or ends it.
func TestClaimedEntriesAreLeftAlone(t *testing.T) {
	p := opened(t)
	if p.Features().Mark == "" {
		t.Skip("needs a kernel that shows what a quota holds back; runs on Linux 5.15 and later")
	}
	tr := cgrouptest.New(t)
	path := tr.Make("a")
	tr.Limit(path, 0.2)
	c := containerOf(t, tr, path)
	if err := p.Watch(c); err != nil {
		t.Fatal(err)
	}
	countsOf(t, p, c.ID)
	all := p.coll.Maps[bpfMapHeld]
	is := func(at uint32) bool { return at%heldPerCPU%2 == 0 }
	for at := range uint32(p.ncpu * heldPerCPU) {
		if is(at) {
			if err := all.Put(at, &bpfHeld{Handle: claimed}); err != nil {
				t.Fatal(err)
			}
		}
	}
	tr.Work(path, 4)
	wait.Until(t, "five stopped intervals", func() bool { return *countsOf(t, p, c.ID).StoppedIntervals >= 5 })
	for at := range uint32(p.ncpu * heldPerCPU) {
		var h bpfHeld
		if err := all.Lookup(at, &h); err != nil {
			t.Fatal(err)
		}
		if is(at) && h != (bpfHeld{Handle: claimed}) {
			t.Errorf("entry %d was claimed and is %+v", at, h)
		}
	}
	if troubles := p.Troubles(); len(troubles) > 0 {
		t.Errorf("troubles: %v", troubles)
	}
}
