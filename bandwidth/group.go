package bandwidth

import (
	"fmt"
	"time"
)

// Never is the time of a timer that does not run.
const Never time.Duration = -1

// silo is the quota that one CPU holds for a group (struct cfs_rq). left is below 0, a debt, where the CPU
// ran longer than its quota.
type silo struct {
	left      time.Duration
	throttled bool
	listed    bool          // in the queue of throttled CPUs
	since     time.Duration // throttled_clock; Never: no throttled time counts
	expires   time.Duration // 3.16 to 5.3: deadline of left
	seq       uint64        // 4.18 to 5.3: expires_seq of the refill that filled the silo
}

// Stat has the counters of cpu.stat as the kernel counts them, and two more.
type Stat struct {
	Periods          uint64 // nr_periods: expiries of the period timer
	ThrottledPeriods uint64 // nr_throttled: expiries that found a throttled CPU
	// Throttled is throttled_time: a sum over CPUs.
	Throttled time.Duration
	Bursts    uint64        // nr_bursts
	BurstTime time.Duration // burst_time
	// ActivePeriods counts the periods in which the group ran or was throttled. The kernel has no such
	// counter, but this is what people mean by periods.
	ActivePeriods uint64
	Usage         time.Duration // CPU time charged
}

// Group is the bandwidth control of one task group: struct cfs_bandwidth and its per-CPU silos. A Group has
// no clock: each call passes the time since an origin of the caller's choice, and time never goes back. It
// starts no timer: after every call the caller asks PeriodAt and SlackAt, and calls PeriodTimer and
// SlackTimer at those times.
type Group struct {
	// Trace receives each step of the accounting; nil: the group reports none.
	Trace func(Step)
	// Skew is how far each CPU's clock runs ahead of the time; nil: not at all. Only rules before 5.4 use it.
	Skew []time.Duration

	rules *Rules
	limit Limit

	pool, snap time.Duration // runtime, runtime_snap
	idle       bool
	running    bool          // period_active: the period timer runs
	next       time.Duration // next expiry of the period timer
	timerCPU   int           // the CPU that armed the period timer
	slackAt    time.Duration
	expires    time.Duration // 3.16 to 5.3: runtime_expires
	seq        uint64        // 4.18 to 5.3: expires_seq
	silos      []silo
	waiting    []int // throttled_cfs_rq: throttled CPUs, in the order of throttling
	used       bool  // ran or was throttled since the last expiry
	stat       Stat
}

// New makes a group on so many CPUs. Its limit was written at time 0, and one of its periods begins at phase.
// It returns an error for fewer than 1 CPU or a phase below 0, and a *Refused for a limit that the kernel
// refuses.
func New(r *Rules, cpus int, l Limit, phase time.Duration) (*Group, error) {
	if cpus < 1 || phase < 0 {
		return nil, fmt.Errorf("group on %d CPUs with phase %v: give at least 1 CPU, and a phase of 0 or more", cpus, phase)
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

// Limit is the limit in force.
func (g *Group) Limit() Limit { return g.limit }

// Stat returns the counters at time now. Throttled includes the time of CPUs that are still throttled.
func (g *Group) Stat(now time.Duration) Stat {
	s := g.stat
	for i := range g.silos {
		if since := g.silos[i].since; since != Never {
			s.Throttled += now - since
		}
	}
	return s
}

// Throttled reports whether the group's own quota holds its threads back on a CPU.
func (g *Group) Throttled(cpu int) bool { return g.silos[cpu].throttled }

// Hold sets what Pool is, as after a while of use: at least 0, at most the quota and the burst.
func (g *Group) Hold(pool time.Duration) {
	g.pool = min(max(pool, 0), g.limit.Quota+g.limit.Burst)
	g.snap = g.pool
}

// Pool is the CPU time that no CPU has taken yet.
func (g *Group) Pool() time.Duration { return g.pool }

// Left is the CPU time that a CPU may still use before it needs more from the pool. A debt is below 0.
func (g *Group) Left(cpu int) time.Duration { return g.silos[cpu].left }

// PeriodAt is the time at which PeriodTimer is due, or Never.
func (g *Group) PeriodAt() time.Duration {
	if !g.running {
		return Never
	}
	return g.next
}

// SlackAt is the time at which SlackTimer is due, or Never.
func (g *Group) SlackAt() time.Duration { return g.slackAt }

// TimerCPU is the CPU on which the period timer runs.
func (g *Group) TimerCPU() int { return g.timerCPU }

// Charge takes d of CPU time from a CPU's silo, and refills a used-up silo with a slice from the pool
// (account_cfs_rq_runtime). runnable says that the thread that ran d goes on, rather than to sleep. Charge
// returns true if the CPU has no quota left and must call Check. From 7.2 on Charge itself has then throttled
// the CPU.
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
	if s.throttled && g.rules.Has(Since5_4) {
		return true
	}
	if g.rules.Has(Since7_2) && !runnable {
		if !g.assign(now, cpu, 1) {
			g.throttle(now, cpu, false)
		}
		return s.throttled
	}
	if g.assign(now, cpu, g.rules.Slice) {
		return false
	}
	if g.rules.Has(Since7_2) {
		g.throttle(now, cpu, true)
	}
	return true
}

// Check throttles a CPU that has no quota left, at the switch from one thread to the next
// (check_cfs_rq_runtime). queued says that the CPU has runnable threads of the group. Check returns true if
// the CPU is throttled: no thread of the group may run there.
func (g *Group) Check(now time.Duration, cpu int, queued bool) bool {
	s := &g.silos[cpu]
	if s.throttled {
		return true
	}
	if !g.limit.Limited() || s.left > 0 {
		return false
	}
	if g.rules.Has(Since5_8) && g.assign(now, cpu, 1) {
		return false
	}
	g.throttle(now, cpu, queued)
	return true
}

// Enqueue tells that the first thread of the group becomes runnable on a CPU (check_enqueue_throttle). It
// returns true if the CPU is throttled, by this call or an earlier one.
func (g *Group) Enqueue(now time.Duration, cpu int) bool {
	s := &g.silos[cpu]
	if s.throttled {
		// From 6.6 on throttled time begins with the first queued thread.
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

// Dequeue tells that the last thread of the group left a CPU (return_cfs_rq_runtime). All but MinRuntime of
// the silo goes back to the pool.
func (g *Group) Dequeue(now time.Duration, cpu int) {
	s := &g.silos[cpu]
	slack := s.left - g.rules.MinRuntime
	if !g.limit.Limited() || slack <= 0 {
		return
	}
	s.left -= slack
	// The pool takes no quota of an earlier period back: it is lost.
	if !g.rules.Has(Since5_4) && s.expires != g.expires {
		g.step(Step{Kind: Lost, At: now, CPU: cpu, Amount: slack})
		return
	}
	g.pool += slack
	g.step(Step{Kind: Returned, At: now, CPU: cpu, Amount: slack})
	if g.pool <= g.rules.Slice || len(g.waiting) == 0 || g.refillWithin(now, g.rules.SlackPeriod+g.rules.MinExpiration) {
		return
	}
	// Before 5.4 each return postponed the timer.
	if g.slackAt == Never || !g.rules.Has(Since5_4) {
		g.slackAt = now + g.rules.SlackPeriod
	}
}

func (g *Group) refillWithin(now, d time.Duration) bool { return g.running && g.next-now < d }

// assign fills a silo up to target (__assign_cfs_rq_runtime). It pays a debt first, so the CPU then holds
// target and no more. It returns false if the silo stays empty.
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

// start arms the period timer, which expires on multiples of the period from phase (start_cfs_bandwidth).
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
	// Before 6.6 the throttled time of an empty CPU counted too.
	if queued || !g.rules.Has(Since6_6) {
		s.since = now
	}
	g.start(now, cpu)
	g.step(Step{Kind: Throttled, At: now, CPU: cpu})
}

// Unthrottle ends the throttling of a CPU that PeriodTimer, SlackTimer or Configure has freed
// (unthrottle_cfs_rq). It returns false and changes nothing if they have not, or if the CPU has a debt again
// since.
func (g *Group) Unthrottle(now time.Duration, cpu int) bool {
	s := &g.silos[cpu]
	if !s.throttled || s.listed {
		return false
	}
	if s.left <= 0 && g.limit.Limited() && g.rules.Has(Since6_18) {
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
