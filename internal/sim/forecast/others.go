package forecast

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// otherKey is one owner of CPU time on one CPU.
type otherKey struct {
	owner uint32
	cpu   int32
}

// other is what somebody else used of a CPU: runs that begin when they began, each as long as it ran in all.
type other struct {
	otherKey
	steps  []simulate.ReplayStep
	used   int64
	began  int64
	ended  int64
	halted bool // interrupted, it still wants the CPU
	sum    int64
}

// patience is how long after an interruption the same owner on the same CPU still counts as the one who goes on.
const patience = 100 * time.Millisecond

// held counts the time for which somebody else held a CPU. runnable: was interrupted, and goes on later.
func (b *Builder) held(n int32, c *cpu, runnable bool) {
	d := b.now - c.since
	if c.owner == recording.Idle || d <= 0 {
		return
	}
	key := otherKey{c.owner, n}
	o := b.others[key]
	if o == nil {
		if len(b.others) == maxThreads {
			return
		}
		o = &other{otherKey: key}
		b.others[key] = o
	}
	if !o.halted || c.since-o.ended > patience.Nanoseconds() {
		b.endOther(o)
		o.began = c.since
	}
	o.used += d
	o.sum += d
	o.ended, o.halted = b.now, runnable
}

// endOther writes down what an owner did since it came.
func (b *Builder) endOther(o *other) {
	if o.used == 0 {
		return
	}
	o.steps = append(o.steps,
		simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(o.began)},
		simulate.ReplayStep{Kind: simulate.StepRun, For: time.Duration(o.used)})
	b.steps += 2
	o.used = 0
}
