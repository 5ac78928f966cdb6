package forecast

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// napping is a thread whose work takes 5 ms, and each fifth time 60 more, as if it
// was stopped. It sleeps for a random time from then on, or until random moments.
func napping(chance *rand.Rand, n int, relative bool, p *Pool) *thread {
	t := &thread{pool: p}
	for now := int64(0); len(t.naps) < n; {
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
		t.naps = append(t.naps, nap{step: len(t.steps) - 2, slept: next - now - took, at: next})
		now = next
	}
	return t
}

// Random sleeps are told by what a long turn does to the next wake-up, of all
// threads of a pool together; of few turns nothing is told.
func TestLoops(t *testing.T) {
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 1))
		looping, moments, few := &Pool{Name: "loop"}, &Pool{Name: "moments"}, &Pool{Name: "few"}
		b := &Builder{}
		for range 3 {
			b.order = append(b.order, napping(chance, 60, true, looping), napping(chance, 60, false, moments))
		}
		b.order = append(b.order, napping(chance, 10, true, few))
		b.relative()
		for _, th := range b.order {
			sleeps := 0
			for _, s := range th.steps {
				if s.Kind == simulate.StepSleep {
					sleeps++
				}
			}
			if th.pool == looping && sleeps != len(th.naps) || th.pool != looping && sleeps > 0 {
				t.Errorf("seed %d, %s: %d of %d naps are relative", seed, th.pool.Name, sleeps, len(th.naps))
			}
		}
	}
}

// A sleep that took longer than the others of its thread was late, and none until a moment of its own.
func TestLateNapsAreRelative(t *testing.T) {
	th := &thread{pool: &Pool{}}
	now := int64(0)
	for i := range 30 {
		slept := int64(5 * time.Millisecond)
		if i%10 == 9 {
			slept += int64(700 * time.Microsecond)
		}
		now += slept + int64(i)*int64(time.Millisecond)/3
		th.steps = append(th.steps, simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(now)}, simulate.ReplayStep{Kind: simulate.StepRun, For: time.Millisecond})
		th.naps = append(th.naps, nap{step: len(th.steps) - 2, slept: slept, at: now})
	}
	th.relative()
	for i, s := range th.steps {
		if i%2 == 0 && s.Kind != simulate.StepSleep {
			t.Errorf("step %d: %+v", i, s)
		}
	}
}
