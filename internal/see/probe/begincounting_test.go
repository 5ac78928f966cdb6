package probe

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/wait"
)

// refuse has the kernel refuse to run a program until mend.
func refuse(t *testing.T, p *Probe, program string) (mend func()) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := p.coll.Programs[program]
	closed, err := whole.Clone()
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	set := func(to *ebpf.Program) { p.coll.Programs[program] = to }
	set(closed)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		set(whole)
	}
}

// TestCountingBeginsAgain checks a container whose threads or CPUs could not be read when it was watched. It has no
// counts until the kernel allows it, and counts from then on.
func TestCountingBeginsAgain(t *testing.T) {
	for _, program := range []string{bpfProgSyncCpu, bpfProgLookAtThreads} {
		t.Run(program, func(t *testing.T) {
			p := opened(t)
			mend := refuse(t, p, program)
			tr := cgrouptest.New(t)
			c := containerOf(t, tr, tr.Make("a"))
			tr.Work(c.Path, 2)
			if err := p.Watch(c); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if n, err := p.Read(c.ID); err == nil {
					t.Fatalf("counts that lack who ran already are told: %+v", n)
				}
				time.Sleep(beginRetry)
			}
			mended := monotonic()
			mend()
			wait.Until(t, "counts", func() bool {
				_, err := p.Read(c.ID)
				return err == nil
			})
			if n := countsOf(t, p, c.ID); n.SinceNS < mended {
				t.Errorf("it counts since %d, before %d, when it could be settled", n.SinceNS, mended)
			}
			wait.Until(t, "two threads that want a CPU", func() bool { return countsOf(t, p, c.ID).Wanted == 2 })
		})
	}
}

// TestUnwatchBeforeCounting checks that Unwatch ends a watch that never began to count, and frees its slot.
func TestUnwatchBeforeCounting(t *testing.T) {
	p := opened(t)
	mend := refuse(t, p, bpfProgLookAtThreads)
	tr := cgrouptest.New(t)
	a, b := containerOf(t, tr, tr.Make("a")), containerOf(t, tr, tr.Make("b"))
	if err := p.Watch(a); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(a.ID); err == nil {
		t.Fatal("it is counting")
	}
	if err := p.Unwatch(a.ID); err != nil {
		t.Fatal(err)
	}
	mend()
	if err := p.Watch(b); err != nil {
		t.Fatal(err)
	}
	time.Sleep(beginRetry)
	countsOf(t, p, b.ID)
	var handle uint64
	if err := p.coll.Maps[bpfMapWatched].Lookup(a.ID, &handle); err == nil {
		t.Errorf("the kernel still counts in %d for what is not watched", handle)
	}
}
