package forecast

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// fed is a reader that wakes the threads of a pool, on CPUs of their own. choose selects one of the sleeping
// threads, which it gets in the order in which they fell asleep. Each then works for some milliseconds.
func fed(choose func(asleep []int) int) recording.Recording {
	const workers = 4
	s := rt.New(workers+1).Limit(500*ms, 100*ms).Process("app")
	io, pool := s.Threads("io", 1)[0], s.Threads("http", workers)
	at := func(d time.Duration, e recording.Event) { e.AtNS = d.Nanoseconds(); s.Add(e) }
	chance := rand.New(rand.NewPCG(7, 7))
	asleep, until := []int{0, 1, 2, 3}, map[int]time.Duration{}
	for now := 10 * ms; now < 2*time.Second; now += ms {
		for w := range pool {
			if end, ok := until[w]; ok && end <= now {
				at(now, recording.Event{Kind: recording.Switch, CPU: int32(w), Thread: pool[w]})
				delete(until, w)
				asleep = append(asleep, w)
			}
		}
		if len(asleep) == 0 || chance.IntN(4) > 0 {
			continue
		}
		k := choose(asleep)
		w := asleep[k]
		asleep = append(asleep[:k:k], asleep[k+1:]...)
		until[w] = now + time.Duration(2+chance.IntN(10))*ms
		at(now, recording.Event{Kind: recording.Wakeup, Thread: io, CPU: workers, Owner: recording.FirstOwner})
		at(now, recording.Event{Kind: recording.Switch, NextThread: io, CPU: workers})
		at(now, recording.Event{Kind: recording.Wakeup, Thread: pool[w], CPU: int32(w), Waker: io})
		at(now, recording.Event{Kind: recording.Switch, NextThread: pool[w], CPU: int32(w)})
		at(now+ms/2, recording.Event{Kind: recording.Switch, Thread: io, CPU: workers})
	}
	return s.Run(2100 * ms)
}

// Threads that wake in the order in which they fell asleep share a work queue. Threads that wake in no order
// have work of their own.
func TestWorkQueue(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for name, test := range map[string]struct {
		choose func(asleep []int) int
		want   simulate.WakeOrder
	}{
		"queue": {func([]int) int { return 0 }, simulate.OldestFirst},
		"stack": {func(asleep []int) int { return len(asleep) - 1 }, simulate.NewestFirst},
		"own":   {func(asleep []int) int { return chance.IntN(len(asleep)) }, simulate.NotShared},
		// A lock wakes its waiters out of turn: such sleeps are a thread's own.
		"locks": {func(asleep []int) int { return min(len(asleep)-1, chance.IntN(5)/4) }, simulate.OldestFirst},
	} {
		l := loadOf(t, fed(test.choose))
		found := false
		for _, p := range l.Pools {
			if p.Name != "http-*" {
				continue
			}
			found = true
			w := p.workloads[0]
			if got := l.replay.WakeOrders[w]; got != test.want {
				t.Errorf("%s: wake order %d, want %d", name, got, test.want)
			}
			idle, own := 0, 0
			first, n := l.threadsOf(w)
			for _, th := range l.replay.Threads[first : first+n] {
				for _, s := range th.Steps {
					if s.Kind == simulate.StepAwait && s.Idle {
						idle++
					} else if s.Kind == simulate.StepAwait {
						own++
					}
				}
			}
			if (idle > 0) != (test.want != simulate.NotShared) || (own > 0) != (test.want == simulate.NotShared || name == "locks") {
				t.Errorf("%s: %d idle sleeps, %d of a thread's own", name, idle, own)
			}
			r, err := l.run(trial{remedy: Remedy{Name: None}, load: 1, seed: 1})
			if err != nil || r.refused != nil {
				t.Fatal(name, err, r.refused)
			}
			if d := r.cpu - l.recorded.cpu; d < -ms || d > ms || r.unfinished > 0 {
				t.Errorf("%s: %v of CPU time, recorded %v; %v left", name, r.cpu, l.recorded.cpu, r.unfinished)
			}
		}
		if !found {
			t.Errorf("%s: no pool: %q", name, l.PoolNames())
		}
	}
}

// One thread that is woken for all others of its name, such as a poller, shares no queue with them, though it always fell asleep last.
func TestAPollerOfTheSameName(t *testing.T) {
	s := rt.New(2).Limit(200*ms, 100*ms).Process("app")
	pool := s.Threads("http", 4)
	at := func(d time.Duration, e recording.Event) { e.AtNS = d.Nanoseconds(); s.Add(e) }
	for i := range 100 {
		now, worker := time.Duration(1+i)*10*ms, pool[1+i%3]
		at(now, recording.Event{Kind: recording.Wakeup, Thread: pool[0], Owner: recording.FirstOwner})
		at(now, recording.Event{Kind: recording.Switch, NextThread: pool[0]})
		at(now+ms, recording.Event{Kind: recording.Wakeup, Thread: worker, CPU: 1, Waker: pool[0]})
		at(now+ms, recording.Event{Kind: recording.Switch, NextThread: worker, CPU: 1})
		at(now+2*ms, recording.Event{Kind: recording.Switch, Thread: worker, CPU: 1})
		at(now+3*ms, recording.Event{Kind: recording.Switch, Thread: pool[0]})
	}
	l := loadOf(t, s.Run(1100*ms))
	for _, p := range l.Pools {
		for _, w := range p.workloads {
			if got := l.replay.WakeOrders[w]; got != simulate.NotShared {
				t.Errorf("%s: wake order %d, want none", p.Name, got)
			}
		}
	}
}
