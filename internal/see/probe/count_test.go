package probe

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/wait"
)

// rewrite changes the kernel side's state of a container that counts nothing meanwhile.
func rewrite(t *testing.T, p *Probe, id uint64, change func(*bpfContainer)) {
	t.Helper()
	countsOf(t, p, id) // it counts from here on
	number := p.slots.byID[id].number
	var c bpfContainer
	if err := p.coll.Maps[bpfMapContainers].Lookup(number, &c); err != nil {
		t.Fatal(err)
	}
	change(&c)
	if err := p.coll.Maps[bpfMapContainers].Put(number, &c); err != nil {
		t.Fatal(err)
	}
}

// TestCountsStayWithinAWord checks that a thread beyond a word's range is reported, and changes neither count nor
// time.
func TestCountsStayWithinAWord(t *testing.T) {
	p := opened(t)
	tr := cgrouptest.New(t)
	c := containerOf(t, tr, tr.Make("a"))
	if err := p.Watch(c); err != nil {
		t.Fatal(err)
	}
	rewrite(t, p, c.ID, func(k *bpfContainer) { k.WantedWord |= wordCount })
	tr.Work(c.Path, 3)
	const full = "a count would have gone above 65535"
	wait.Until(t, full, func() bool { return p.Troubles()[full] > 0 })
	n := countsOf(t, p, c.ID)
	// Some of the threads may sleep by now, and were not all counted: there are fewer than 100.
	if n.Wanted < wordCount-100 || n.Wanted > wordCount {
		t.Errorf("%d wanted, want %d or little less", n.Wanted, wordCount)
	}
	sum := int64(0)
	for _, ns := range n.WantedNS {
		sum += ns
	}
	if sum != int64(n.AtNS-n.SinceNS) {
		t.Errorf("wanted sums to %d ns of %d", sum, n.AtNS-n.SinceNS)
	}
}

// TestOwedChangesCount checks that a read counts a change that won no exchange, and that the next change adds it to
// the word.
func TestOwedChangesCount(t *testing.T) {
	p := opened(t)
	tr := cgrouptest.New(t)
	c := containerOf(t, tr, tr.Make("a"))
	if err := p.Watch(c); err != nil {
		t.Fatal(err)
	}
	rewrite(t, p, c.ID, func(k *bpfContainer) { k.WantedOwed = 7 })
	if n := countsOf(t, p, c.ID); n.Wanted != 7 || len(n.WantedNS) != 8 {
		t.Errorf("%d wanted, %d levels; 7 are owed", n.Wanted, len(n.WantedNS))
	}
	tr.Work(c.Path, 2)
	var k bpfContainer
	wait.Until(t, "a change that takes what is owed", func() bool {
		if err := p.coll.Maps[bpfMapContainers].Lookup(p.slots.byID[c.ID].number, &k); err != nil {
			t.Fatal(err)
		}
		return k.WantedOwed == 0
	})
	wait.Until(t, "two threads more than were owed", func() bool { return countsOf(t, p, c.ID).Wanted >= 9 })
	if troubles := p.Troubles(); len(troubles) > 0 {
		t.Errorf("troubles: %v", troubles)
	}
}

// limited is a container with a limit of 0.1 CPUs that is watched by a probe that sees what a quota holds back.
func limited(t *testing.T) (*Probe, *cgrouptest.Tree, Container) {
	t.Helper()
	p := opened(t)
	if p.Features().Mark == "" {
		t.Skip("needs a kernel that shows what a quota holds back; runs on Linux 5.15 and later")
	}
	tr := cgrouptest.New(t)
	path := tr.Make("a")
	tr.Limit(path, 0.1)
	c := containerOf(t, tr, path)
	if err := p.Watch(c); err != nil {
		t.Fatal(err)
	}
	return p, tr, c
}

// TestLateStopsAreReported checks that StoppedLateNS has the error of stops that come after a later change, as a hypervisor
// causes.
func TestLateStopsAreReported(t *testing.T) {
	p, tr, c := limited(t)
	path := c.Path
	const ahead = uint64(2e9) // of the clock: all changes until then are late
	begin := countsOf(t, p, c.ID).AtNS
	rewrite(t, p, c.ID, func(k *bpfContainer) {
		word := (begin + ahead) >> 4 << 16
		k.Stopped[0], k.StoppedWord = elapsed(word, p.slots.byID[c.ID].sinceNS, begin), word
	})
	tr.Work(path, 4)
	time.Sleep(time.Duration(begin+ahead-monotonic()) + 100*time.Millisecond)
	n := countsOf(t, p, c.ID)
	if n.StoppedLateNS == 0 || n.LateNS < n.StoppedLateNS || n.Inexact {
		t.Errorf("stops late by %d ns of %d in all, hasty: %v", n.StoppedLateNS, n.LateNS, n.Inexact)
	}
}

// TestAStopAfterWeeksIsNotLate checks that a container that no quota held back for four weeks, half of what a word has room for, is
// stopped as any other.
func TestAStopAfterWeeksIsNotLate(t *testing.T) {
	p, tr, c := limited(t)
	path := c.Path
	begin := countsOf(t, p, c.ID).AtNS
	rewrite(t, p, c.ID, func(k *bpfContainer) {
		word := (begin - uint64(28*24*time.Hour)) >> 4 << 16
		k.Stopped[0], k.StoppedWord = elapsed(word, p.slots.byID[c.ID].sinceNS, begin), word
	})
	tr.Work(path, 4)
	wait.Until(t, "stops that count", func() bool { return *countsOf(t, p, c.ID).StoppedNS > int64(100*time.Millisecond) })
	if n := countsOf(t, p, c.ID); n.StoppedLateNS > uint64(time.Minute) || n.Inexact {
		t.Errorf("stops late by %d ns, inexact: %v", n.StoppedLateNS, n.Inexact)
	}
}

// TestWithOwed checks that an owed change alters the count within its bits, and never the time.
func TestWithOwed(t *testing.T) {
	const at = 5 << 16
	for _, tc := range []struct {
		word uint64
		owed int64
		want uint64
	}{
		{at | 3, 0, at | 3}, {at | 3, 2, at | 5}, {at | 3, -3, at}, {at | 3, -4, at},
		{at | wordCount, 1, at | wordCount}, {at | wordCount, -1, at | wordCount - 1},
	} {
		if got := withOwed(tc.word, tc.owed); got != tc.want {
			t.Errorf("%#x owed %d is %#x, want %#x", tc.word, tc.owed, got, tc.want)
		}
	}
}
