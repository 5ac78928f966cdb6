package threads

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// thread is one thread at work.
type thread struct {
	spec       *Spec
	index      int
	begin, end time.Duration // of the scenario, on CLOCK_MONOTONIC
	chance     *rand.Rand
	call       *caller // Kernel
	latency    latency
	rounds     atomic.Uint64
	x          uint64 // what it computes
	failed     atomic.Pointer[string]
	_          [64]byte // the next thread's counters are on another cache line
}

// run is a thread's life from the beginning to the end.
func (t *thread) run() {
	setTimerSlack(t.spec.TimerSlack)
	if t.spec.Kind == scenario.Fib {
		if err := pinTo(t.spec.CPUs[t.index%len(t.spec.CPUs)]); err != nil {
			t.fail(fmt.Errorf("pin a thread: %w", err))
			return
		}
	}
	workload.SleepUntil(t.begin + t.spec.Start)
	switch {
	case t.spec.Kind == scenario.Burn, t.spec.Kind == scenario.Fib && t.index < t.spec.Fast,
		t.spec.Kind == scenario.Neighbour && t.spec.On == 0:
		t.burnUntil(t.end)
	case t.spec.Kind == scenario.Neighbour:
		t.toggle()
	case t.spec.Kind == scenario.Sleeper:
		t.measureSleeps()
	default:
		t.sleepAndRun()
	}
}

func (t *thread) fail(err error) {
	text := err.Error()
	t.failed.Store(&text)
}

// failure is why the thread could not do its work; "" if it does.
func (t *thread) failure() string {
	if text := t.failed.Load(); text != nil {
		return *text
	}
	return ""
}

// roundsPerBurst is how many rounds a burning thread makes between two readings of
// the clock, about 20 µs.
const roundsPerBurst = 40_000

func (t *thread) burnUntil(at time.Duration) {
	for workload.Now() < at {
		t.x = workload.Compute(t.x, roundsPerBurst)
		t.rounds.Add(roundsPerBurst)
	}
}

// toggle burns and rests by the clock, so that all threads, of all neighbours,
// do so at once, whatever a quota does to them.
func (t *thread) toggle() {
	cycle := t.spec.On + t.spec.Off
	for from := t.begin + t.spec.Start; from < t.end; from += cycle {
		t.burnUntil(min(from+t.spec.On, t.end))
		workload.SleepUntil(min(from+cycle, t.end))
		// Behind by cycles: those are lost.
		for from+2*cycle <= workload.Now() {
			from += cycle
		}
	}
}

func (t *thread) measureSleeps() {
	for now := workload.Now(); now < t.end; now = workload.Now() {
		t.latency.begin(now)
		workload.SleepUntil(now + draw(t.spec.Sleep, t.chance))
		t.latency.done(workload.Now(), t.end)
		t.x = workload.BurnFor(draw(t.spec.Run, t.chance), t.x, roundsPerLook, nil)
	}
}

func (t *thread) sleepAndRun() {
	// Threads of a pool don't start in step.
	first := time.Duration(t.chance.Float64() * float64(t.spec.Sleep.Average()))
	for due := t.wakeAfter(workload.Now(), first); due < t.end; {
		t.latency.begin(due)
		workload.SleepUntil(due)
		work := draw(t.spec.Run, t.chance)
		if t.call != nil {
			if err := t.call.use(work); err != nil {
				t.fail(err)
				return
			}
		} else {
			t.x = workload.BurnFor(work, t.x, roundsPerLook, nil)
		}
		now := workload.Now()
		t.latency.done(now, t.end)
		due = t.wakeAfter(now, draw(t.spec.Sleep, t.chance))
	}
}

// wakeAfter is when a sleep that begins now ends, by the phases; the scenario's end if
// it does not.
func (t *thread) wakeAfter(now, sleep time.Duration) time.Duration {
	start := t.begin + t.spec.Start
	at, wakes := scenario.WakeAfter(t.spec.Phases, now-start, sleep)
	if !wakes {
		return t.end
	}
	return start + at
}
