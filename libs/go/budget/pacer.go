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
	// steps is how many times a period CPU time is read at most. The library for the JVM reads it 100 times: what the JDK tells of it
	// moves in ticks of 1 to 10 ms.
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
	held   bool
	others pace.Others
	busy   pace.Busy
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
	return pace.Period{Quota: p.others.Left(p.quota), Length: p.period, Elapsed: now - begin, Used: p.used - p.base}, true
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
		Cost:    p.busy.Cost(cost),
		Running: running,
		Reserve: time.Duration(share * float64(p.quota)),
		Slack:   p.slack.Kept(),
	})
	p.held = p.held || !start
	return start, wait
}
