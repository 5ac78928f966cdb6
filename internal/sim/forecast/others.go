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

// other is the CPU time that an owner outside of the container used on a CPU: runs that begin at their
// recorded time, each as long as its CPU time.
type other struct {
	otherKey
	steps       []simulate.ReplayStep
	used        int64
	began       int64
	ended       int64
	interrupted bool // was preempted, and still wants the CPU
	sum         int64
}

// resumeWindow is the time after a preemption within which the same owner on the same CPU counts as the same
// run.
const resumeWindow = 100 * time.Millisecond

// noteOther counts the time for which an owner outside of the container held a CPU. runnable says that the
// owner was preempted and goes on later.
func (b *builder) noteOther(n int32, c *cpu, runnable bool) {
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
	if !o.interrupted || c.since-o.ended > resumeWindow.Nanoseconds() {
		b.flushOther(o)
		o.began = c.since
	}
	o.used += d
	o.sum += d
	o.ended, o.interrupted = b.now, runnable
}

// flushOther makes steps of an owner's last run.
func (b *builder) flushOther(o *other) {
	if o.used == 0 {
		return
	}
	o.steps = append(o.steps,
		simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(o.began)},
		simulate.ReplayStep{Kind: simulate.StepRun, For: time.Duration(o.used)})
	b.steps += 2
	o.used = 0
}
