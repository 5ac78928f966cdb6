package diagnose_test

import (
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// Of a pool it is told how many threads it has, how many of them wanted a CPU at once, and in most of the time; also of
// one that did nothing.
func TestThreadsOfAPool(t *testing.T) {
	s := rt.New(8).Process("java")
	loops, bus := s.Threads("loop", 16), s.Threads("bus", 60)
	s.Threads("idle", 20)
	for i := range 1000 { // of a second one loop works for 200 ms, and once five of them want a CPU
		at := time.Duration(i) * ms
		s.Work(at, 200*time.Microsecond, loops[i%16])
		if i == 500 {
			s.Work(at, 300*time.Microsecond, loops[:5]...)
		}
	}
	s.Work(400*ms, 30*ms, bus[7], bus[59])
	e := explain(s.Run(time.Second))
	got := map[string][3]int{}
	for _, p := range e.Pools {
		got[p.Name] = [3]int{p.Size, p.Runnable, p.RunnableP99}
	}
	if got["loop-*"] != [3]int{16, 5, 1} || got["bus-*"] != [3]int{60, 2, 2} {
		t.Errorf("%v", got)
	}
	idle := slices.IndexFunc(e.IdlePools, func(p diagnose.PoolUse) bool { return p.Name == "idle-*" })
	if idle < 0 || e.IdlePools[idle].Size != 20 || e.IdlePools[idle].Runnable != 0 {
		t.Errorf("%+v", e.IdlePools)
	}
}
