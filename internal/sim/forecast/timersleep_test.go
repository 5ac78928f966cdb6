package forecast

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// sleeping is a thread whose work takes 5 ms, and each fifth time 60 ms more, as if it was throttled. It
// sleeps for a random time from then on, or until random moments.
func sleeping(chance *rand.Rand, n int, relative bool, p *Pool) *thread {
	t := &thread{pool: p}
	for now := int64(0); len(t.timerSleeps) < n; {
		took := int64(5 * time.Millisecond)
		if chance.IntN(5) == 0 {
			took += int64(60 * time.Millisecond)
		}
		next := now + took + int64(chance.ExpFloat64()*float64(40*time.Millisecond))
		if !relative {
			next = now + max(took+1, int64((70+chance.ExpFloat64()*40)*float64(time.Millisecond)))
		}
		t.steps = append(t.steps, simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(next)},
			simulate.ReplayStep{Kind: simulate.StepRun, For: 5 * time.Millisecond})
		t.timerSleeps = append(t.timerSleeps, timerSleep{step: len(t.steps) - 2, slept: next - now - took, at: next})
		now = next
	}
	return t
}

// The effect of a long cycle on the next wake-up shows which random sleeps are relative, over all threads of
// a pool. Few cycles show nothing.
func TestSleepsAfterWork(t *testing.T) {
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 1))
		looping, moments, few := &Pool{Name: "loop"}, &Pool{Name: "moments"}, &Pool{Name: "few"}
		b := &builder{}
		for range 3 {
			b.order = append(b.order, sleeping(chance, 60, true, looping), sleeping(chance, 60, false, moments))
		}
		b.order = append(b.order, sleeping(chance, 10, true, few))
		b.detectPeriodicTimers()
		for _, th := range b.order {
			sleeps := 0
			for _, s := range th.steps {
				if s.Kind == simulate.StepSleep {
					sleeps++
				}
			}
			if th.pool == looping && sleeps != len(th.timerSleeps) || th.pool != looping && sleeps > 0 {
				t.Errorf("seed %d, %s: %d of %d sleeps are relative", seed, th.pool.Name, sleeps, len(th.timerSleeps))
			}
		}
	}
}

// A sleep that took longer than the others of its thread was late. It did not last until a moment of its own.
func TestLateSleepsAreRelative(t *testing.T) {
	th := &thread{pool: &Pool{}}
	now := int64(0)
	for i := range 30 {
		slept := int64(5 * time.Millisecond)
		if i%10 == 9 {
			slept += int64(700 * time.Microsecond)
		}
		now += slept + int64(i)*int64(time.Millisecond)/3
		th.steps = append(th.steps, simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(now)},
			simulate.ReplayStep{Kind: simulate.StepRun, For: time.Millisecond})
		th.timerSleeps = append(th.timerSleeps, timerSleep{step: len(th.steps) - 2, slept: slept, at: now})
	}
	th.detectPeriodicTimer()
	for i, s := range th.steps {
		if i%2 == 0 && s.Kind != simulate.StepSleep {
			t.Errorf("step %d: %+v", i, s)
		}
	}
}
