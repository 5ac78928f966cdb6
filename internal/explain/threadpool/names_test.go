package threadpool

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesKeepPoolsApart(t *testing.T) {
	names := NewNames(8)
	for _, c := range []struct {
		tgid       uint32
		comm, want string
	}{
		{1, "http-worker-1", "http-worker-*"},
		{1, "http-worker-22", "http-worker-*"},
		{1, "nioEven..up-2-1", "nioEven..up-*-*"},
		{1, "nioEven..p-2-10", "nioEven..up-*-*"}, // one letter less, for one digit more
		{1, "nioEven..-2-100", "nioEven..up-*-*"},
		{1, "finagle..boss-1", "finagle..boss-*"},
		{1, "finagle..load-1", "finagle..load-*"}, // another pool of the same head
		{1, "finagle..oad-10", "finagle..load-*"},
		{2, "nioEven..p-2-10", "nioEven..p-*-*"}, // the first of its process
		{2, "nioEven..up-2-1", "nioEven..p-*-*"},
		{3, "pool-1-..ead-10", "pool-*-..ead-*"},
		{3, "pool-1-thread-9", "pool-*-..ead-*"}, // short enough to be whole
		{4, "elastic..][T#3]", "elastic..][T#*]"},
		{4, "elastic..[T#12]", "elastic..][T#*]"},
	} {
		if got := names.Of(c.tgid, c.comm); got != c.want {
			t.Errorf("process %d, %q: %q, want %q", c.tgid, c.comm, got, c.want)
		}
	}
}

// kept counts the strings that are held.
func (n *Names) kept() int {
	all := 0
	count := func(p *namesOf) {
		if p != nil {
			all += len(p.pools) + len(p.order)
		}
	}
	for _, p := range n.processes {
		count(p)
	}
	count(n.further)
	return all
}

// TestNamesAreBounded is a process that renames its threads 10,000 times a second for six seconds, and a container that
// starts as many processes.
func TestNamesAreBounded(t *testing.T) {
	const most, renames = 32, 60_000
	names := NewNames(most)
	rename := func(i int) string {
		return fmt.Sprintf("%c%c%c%c\x1b\xff", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'A'+i/17576%26)
	}
	var full int
	for i := range renames {
		names.Of(7, rename(i))
		if i == most {
			full = names.kept()
		}
	}
	if got := names.kept(); got != full || got > 2*most {
		t.Errorf("%d strings after %d renames, %d after the first %d; want no more", got, renames, full, most)
	}
	if got := names.Of(7, "another"); got != Other {
		t.Errorf("a name after the most: %q, want %q", got, Other)
	}
	if got := names.Of(7, rename(0)); got != Fold(rename(0)) {
		t.Errorf("the first name: %q", got)
	}
	for i := range renames {
		names.Of(uint32(i), rename(i))
	}
	if got, bound := names.kept(), 2*most*(maxProcesses+1); got > bound || len(names.processes) > maxProcesses {
		t.Errorf("%d strings of %d processes; want at most %d of %d", got, len(names.processes), bound, maxProcesses)
	}
	if got := testing.AllocsPerRun(100, func() { names.Of(7, "renamed-again-x") }); got > 4 {
		t.Errorf("%v allocations for a name that is not kept", got)
	}
}

// TestNamesHeap is the same in bytes: what is held for a process that renames its threads is not more after an hour.
func TestNamesHeap(t *testing.T) {
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	names := NewNames(64)
	comm := make([]byte, CommBytes)
	rename := func(n int) {
		for range n {
			rand.Read(comm)
			names.Of(1, string(comm))
		}
	}
	rename(1000)
	before := held()
	rename(50_000)
	if after := held(); after > before+64<<10 {
		t.Errorf("%d bytes held, %d after 50,000 renames more", before, after)
	}
	runtime.KeepAlive(names)
}

// TestNamesProperties: bounded, safe to print, and the same for the same thread name for ever.
func TestNamesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(-1, 6).Draw(t, "most")
		names := NewNames(most)
		comms := rapid.SliceOfN(rapid.OneOf(
			rapid.StringMatching(`[ab]{7}\.\.[ab]{0,4}-[0-9]{1,3}`), rapid.StringN(0, 8, CommBytes), rapid.Just("a-1")),
			1, 60).Draw(t, "comms")
		first := map[string]string{}
		distinct := map[string]bool{}
		for _, comm := range comms {
			got := names.Of(1, comm)
			if was, ok := first[comm]; ok && got != was {
				t.Fatalf("%q: %q, then %q", comm, was, got)
			}
			first[comm] = got
			if got != Other {
				distinct[got] = true
				checkFolded(t, comm)
			}
		}
		if len(distinct) > max(most, 1) {
			t.Fatalf("%d pools, at most %d: %v", len(distinct), most, distinct)
		}
	})
}

func FuzzNames(f *testing.F) {
	f.Add("nioEven..up-2-1", "nioEven..p-2-10", uint32(1))
	f.Fuzz(func(t *testing.T, a, b string, tgid uint32) {
		names := NewNames(2)
		for _, comm := range []string{a, b, a + b, b + a, a} {
			checkFolded(t, comm)
			if got := names.Of(tgid, comm); len([]rune(got)) > MaxName {
				t.Fatalf("%q: %q", comm, got)
			}
		}
		if names.kept() > 4 {
			t.Fatalf("%d strings kept", names.kept())
		}
	})
}
