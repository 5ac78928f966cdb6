package bandwidth

import (
	"fmt"
	"time"
)

// Never is the time of a timer that is not running.
const Never time.Duration = -1

// silo is what one CPU holds of a group's quota (struct cfs_rq). left is below
// 0 where the CPU ran longer than it had: a debt.
type silo struct {
	left      time.Duration
	throttled bool
	listed    bool          // in the queue of throttled CPUs
	since     time.Duration // throttled_clock; Never: not stamped
	expires   time.Duration // eras a and b
	seq       uint64        // era b: expires_seq of the refill this is from
}

// Stat are the counters, as the kernel counts them.
type Stat struct {
	Periods          uint64 // nr_periods: firings of the period timer
	ThrottledPeriods uint64 // nr_throttled: firings that found a CPU throttled
	// Throttled is throttled_time of everything that has ended: a sum over CPUs.
	Throttled time.Duration
	Bursts    uint64        // nr_bursts
	BurstTime time.Duration // burst_time
	// ActivePeriods are those of Periods in which the group ran or was
	// throttled: what people mean by periods, not a counter of the kernel.
	ActivePeriods uint64
	Usage         time.Duration // CPU time charged
}

// Group is the bandwidth control of one task group: struct cfs_bandwidth and
// its per-CPU silos. It has no clock: every method is told the time, which
// never goes back; and starts no timer: ask PeriodAt and SlackAt after every
// call, and call PeriodTimer and SlackTimer at those times.
type Group struct {
	// Trace is called with each step of the accounting; nil: not.
	Trace func(Step)
	// Skew is how far each CPU's clock is ahead of the time; nil: none. Only
	// eras a and b look at it.
	Skew []time.Duration

	rules *Rules
	limit Limit

	pool, snap time.Duration // runtime, runtime_snap
	idle       bool
	running    bool          // the period timer: period_active
	next       time.Duration // its expiry, on the grid
	timerCPU   int           // that armed it
	slackAt    time.Duration
	expires    time.Duration // eras a and b: runtime_expires
	seq        uint64        // era b: expires_seq
	silos      []silo
	waiting    []int // throttled CPUs, first come first served (throttled_cfs_rq)
	used       bool  // ran or was throttled since the last firing
	stat       Stat
}

// New makes a group on cpus CPUs whose limit was written at time 0, with a
// boundary of its periods at phase (at least 0). Errors are *Refused.
func New(r *Rules, cpus int, l Limit, phase time.Duration) (*Group, error) {
	if cpus < 1 || phase < 0 {
		return nil, fmt.Errorf("bandwidth: %d CPUs, phase %v: need 1 and 0 or more", cpus, phase)
	}
	g := &Group{rules: r, next: phase, slackAt: Never, silos: make([]silo, cpus), waiting: make([]int, 0, cpus)}
	for i := range g.silos {
		g.silos[i].since = Never
	}
	if _, err := g.Configure(0, 0, l, nil); err != nil {
		return nil, err
	}
	return g, nil
}

// Limit in force.
func (g *Group) Limit() Limit { return g.limit }

// Stat has the counters at time now. Throttled includes what CPUs are
// throttled for until now.
func (g *Group) Stat(now time.Duration) Stat {
	s := g.stat
	for i := range g.silos {
		if since := g.silos[i].since; since != Never {
			s.Throttled += now - since
		}
	}
	return s
}

// Throttled says whether the group's own quota holds its threads on that CPU.
func (g *Group) Throttled(cpu int) bool { return g.silos[cpu].throttled }

// Pool is the CPU time that no CPU has taken yet.
func (g *Group) Pool() time.Duration { return g.pool }

// Left is what that CPU may still use before it must ask; a debt below 0.
func (g *Group) Left(cpu int) time.Duration { return g.silos[cpu].left }

// PeriodAt is when PeriodTimer is due, or Never.
func (g *Group) PeriodAt() time.Duration {
	if !g.running {
		return Never
	}
	return g.next
}

// SlackAt is when SlackTimer is due, or Never.
func (g *Group) SlackAt() time.Duration { return g.slackAt }

// TimerCPU is the CPU on which the period timer runs.
func (g *Group) TimerCPU() int { return g.timerCPU }

// Charge takes d of CPU time from that CPU's silo, and a slice from the pool
// where the silo is used up (account_cfs_rq_runtime). runnable: the thread that
// ran d can run on, it is not going to sleep. True: there is nothing left, the
// CPU must come to Check. In era h, which throttles at once, it already has.
func (g *Group) Charge(now time.Duration, cpu int, d time.Duration, runnable bool) bool {
	g.stat.Usage += d
	if d > 0 {
		g.used = true
	}
	if !g.limit.Limited() {
		return false
	}
	s := &g.silos[cpu]
	s.left -= d
	g.expire(now, cpu)
	if s.left > 0 {
		return false
	}
	if s.throttled && g.rules.Has(EraC) {
		return true
	}
	if g.rules.Has(EraH) && !runnable {
		if !g.assign(now, cpu, 1) {
			g.throttle(now, cpu, false)
		}
		return s.throttled
	}
	if g.assign(now, cpu, g.rules.Slice) {
		return false
	}
	if g.rules.Has(EraH) {
		g.throttle(now, cpu, true)
	}
	return true
}

// Check throttles the CPU if it has nothing left, at the switch from one
// thread to the next (check_cfs_rq_runtime). queued: threads of the group can
// run here. True: throttled, nothing of the group may run here.
func (g *Group) Check(now time.Duration, cpu int, queued bool) bool {
	s := &g.silos[cpu]
	if s.throttled {
		return true
	}
	if !g.limit.Limited() || s.left > 0 {
		return false
	}
	if g.rules.Has(EraC2) && g.assign(now, cpu, 1) {
		return false
	}
	g.throttle(now, cpu, queued)
	return true
}

// Enqueue is called when the first thread of the group becomes runnable on
// that CPU (check_enqueue_throttle), and may throttle the CPU at once: true.
func (g *Group) Enqueue(now time.Duration, cpu int) bool {
	s := &g.silos[cpu]
	if s.throttled {
		// From 6.6 on the clock starts with the first queued thread.
		if s.since == Never {
			s.since = now
		}
		return true
	}
	if !g.limit.Limited() {
		return false
	}
	g.Charge(now, cpu, 0, true)
	return g.Check(now, cpu, true)
}

// Dequeue is called when the last thread of the group on that CPU is gone
// (return_cfs_rq_runtime): all but MinRuntime of the silo goes back.
func (g *Group) Dequeue(now time.Duration, cpu int) {
	s := &g.silos[cpu]
	slack := s.left - g.rules.MinRuntime
	if !g.limit.Limited() || slack <= 0 {
		return
	}
	s.left -= slack
	// Quota of an earlier period is not taken back, it is lost.
	if !g.rules.Has(EraC) && s.expires != g.expires {
		g.step(Step{Kind: Lost, At: now, CPU: cpu, Amount: slack})
		return
	}
	g.pool += slack
	g.step(Step{Kind: Returned, At: now, CPU: cpu, Amount: slack})
	if g.pool <= g.rules.Slice || len(g.waiting) == 0 || g.refillWithin(now, g.rules.SlackPeriod+g.rules.MinExpiration) {
		return
	}
	// Before 5.4 each return pushed the timer on.
	if g.slackAt == Never || !g.rules.Has(EraC) {
		g.slackAt = now + g.rules.SlackPeriod
	}
}

func (g *Group) refillWithin(now, d time.Duration) bool { return g.running && g.next-now < d }

// assign fills the silo up to target (__assign_cfs_rq_runtime). A debt is paid
// first: the CPU then holds target, not target more.
func (g *Group) assign(now time.Duration, cpu int, target time.Duration) bool {
	s := &g.silos[cpu]
	g.start(now, cpu)
	if g.pool > 0 {
		amount := min(g.pool, target-s.left)
		g.pool -= amount
		s.left += amount
		g.idle = false
		g.step(Step{Kind: Took, At: now, CPU: cpu, Amount: amount})
	}
	g.renew(s)
	return s.left > 0
}

// start arms the period timer on the grid (start_cfs_bandwidth).
func (g *Group) start(now time.Duration, cpu int) {
	if g.running {
		return
	}
	if now >= g.next {
		g.next += ((now-g.next)/g.limit.Period + 1) * g.limit.Period
	}
	g.running, g.timerCPU = true, cpu
}

func (g *Group) throttle(now time.Duration, cpu int, queued bool) {
	s := &g.silos[cpu]
	s.throttled, s.listed = true, true
	g.used = true
	g.waiting = append(g.waiting, cpu)
	// Before 6.6 an empty CPU's time counted too.
	if queued || !g.rules.Has(EraG) {
		s.since = now
	}
	g.start(now, cpu)
	g.step(Step{Kind: Throttled, At: now, CPU: cpu})
}

// Unthrottle ends the throttling of a CPU that PeriodTimer, SlackTimer or
// Configure has freed (unthrottle_cfs_rq). It does nothing to others, nor to a
// CPU that has gone into debt again since.
func (g *Group) Unthrottle(now time.Duration, cpu int) bool {
	s := &g.silos[cpu]
	if !s.throttled || s.listed {
		return false
	}
	if s.left <= 0 && g.limit.Limited() && g.rules.Has(EraF) {
		s.listed = true
		g.waiting = append(g.waiting, cpu)
		return false
	}
	s.throttled = false
	if s.since != Never {
		g.stat.Throttled += now - s.since
		s.since = Never
	}
	g.step(Step{Kind: Unthrottled, At: now, CPU: cpu})
	return true
}
