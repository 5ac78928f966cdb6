package budget

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/unthrottle/unthrottle/libs/go/pace"
)

const (
	// reserved is the part of the quota that App leaves for IO and the collector, backgroundReserved what Background leaves.
	reserved, backgroundReserved = 0.1, 0.3
	// own is the part of the quota that is this process's however much the rest of the container uses: the kernel shares a quota
	// among all that want it. It is more than the slack keeps at most, so that a task starts.
	own = 0.25
	// steps is how many times a period CPU time is read at most.
	steps = 500
)

// pacer knows where in its period the process is, and what of the quota is used.
type pacer struct {
	cpu func() (time.Duration, error)
	// on is read on each start of a task, without the lock.
	on atomic.Bool

	mu            sync.Mutex
	quota, period time.Duration
	phase         pace.Phase
	slack         pace.Slack
	// held: a task was held back since the slack was learnt last.
	held bool
	// others is CPU time per period of the rest of the container; its noise may take it below 0.
	others time.Duration
	// busy is the part of a task's wall time that is CPU time.
	busy float64
	// begin is when the current period began, base the CPU time of the process then; at and used are of the last reading.
	begin, base, at, used time.Duration
}

// moment is where in the period the process is; false: that is not known, and work runs.
func (p *pacer) moment(now time.Duration) (pace.Period, bool) {
	if !p.phase.Known() {
		return pace.Period{}, false
	}
	begin := p.phase.Begin(now)
	if now-p.at > p.period/steps || begin != p.begin || now < p.at {
		used, err := p.cpu()
		if err != nil {
			return pace.Period{}, false
		}
		if begin != p.begin {
			p.base = used
			// CPU time at the beginning of the period lies between the last reading and this one.
			if span := now - p.at; p.at < begin && p.at > 0 && span > 0 && span < 2*p.period {
				p.base = p.used + time.Duration(float64(used-p.used)*float64(begin-p.at)/float64(span))
			}
			p.begin = begin
		}
		p.at, p.used = now, used
	}
	// When in the period the others use their part is not known: it is not for this process at any time.
	quota := max(time.Duration(own*float64(p.quota)), p.quota-max(0, p.others))
	return pace.Period{Quota: quota, Length: p.period, Elapsed: now - begin, Used: p.used - p.base}, true
}

// decide reports whether a task of a class may start, or when to ask again.
func (p *pacer) decide(now time.Duration, class Class, cost time.Duration, running int) (bool, time.Duration) {
	if class == IO || !p.on.Load() {
		return true, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.moment(now)
	if !ok {
		return true, 0
	}
	share := reserved
	if class == Background {
		share = backgroundReserved
	}
	start, wait := pace.Decide(m, pace.Work{
		Cost:    time.Duration(float64(cost) * p.busy),
		Running: running,
		Reserve: time.Duration(share * float64(p.quota)),
		Slack:   p.slack.Kept(),
	})
	p.held = p.held || !start
	return start, wait
}
