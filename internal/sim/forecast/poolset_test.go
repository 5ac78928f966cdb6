package forecast

import (
	"fmt"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// Threads that change their names all the time make no more than maxPools pools, and the last one has the threads of all
// later names.
func TestPoolsAreBounded(t *testing.T) {
	const processes, names = 300, 40
	s := rt.New(2).Limit(20*ms, 100*ms)
	b, err := newBuilder(*s.Header())
	if err != nil {
		t.Fatal(err)
	}
	last := uint32(0)
	for i := range processes {
		last = uint32(1000 + i)
		for n := range names {
			b.add(&recording.Event{AtNS: int64(i*names + n), Kind: recording.Name, Thread: last, TGID: last,
				Text: fmt.Sprintf("p%d-%c%c", i, 'a'+n%26, 'a'+n/26)})
		}
	}
	if got := len(b.pools.all()); got != maxPools {
		t.Errorf("%d names of %d processes make %d pools, and there is room for %d", names, processes, got, maxPools)
	}
	if p := b.order[len(b.order)-1].pool; p.Name != threadpool.Other || p.process != "" {
		t.Errorf("the last thread is in pool %q of process %q", p.Name, p.process)
	}
	if p := b.pools.add(poolName{"app", "worker (long runs)"}, "worker"); p != nil {
		t.Errorf("a role of a full set has a pool of its own, %q", p.Name)
	}
}

// A pool that was removed makes room, and its name gets a new pool.
func TestRemovedPoolMakesRoom(t *testing.T) {
	var s poolSet
	for i := range 2 * maxPools {
		s.of(poolName{"app", fmt.Sprint(i)}, "")
	}
	first := s.all()[0]
	s.remove(func(p *Pool) bool { return p == first })
	if got := s.add(poolName{"app", "0"}, ""); got == nil || got == first || len(s.all()) != maxPools {
		t.Errorf("%d pools, the new one %p and the removed one %p", len(s.all()), got, first)
	}
}
