package bandwidth

import "time"

// PeriodTimer is the end of a period (sched_cfs_period_timer): it counts,
// refills the pool and serves the throttled CPUs in the order in which they
// were throttled. It appends the CPUs that may run again to freed and returns
// it: call Unthrottle for each, at once for TimerCPU and in kernels without
// Async, else when the interrupt arrives.
//
// The kernel doubles the period of a group whose timer it cannot keep up with;
// here the timer is always on time.
func (g *Group) PeriodTimer(now time.Duration, freed []int) []int {
	throttled := len(g.waiting) > 0
	g.stat.Periods++
	if g.used {
		g.stat.ActivePeriods++
	}
	g.used = throttled
	g.step(Step{Kind: PeriodEnd, At: now, CPU: g.timerCPU, Amount: time.Duration(len(g.waiting))})
	deactivate := g.idle && !throttled
	// Since 5.14 an idle group is refilled once more, so that it can burst.
	if !deactivate || g.rules.Has(EraD) {
		g.refill(now)
	}
	if deactivate {
		g.running = false
		g.step(Step{Kind: TimerStopped, At: now, CPU: g.timerCPU})
		return freed
	}
	g.next += g.limit.Period
	if !throttled {
		g.idle = true
		return freed
	}
	g.stat.ThrottledPeriods++
	freed = g.distribute(now, freed)
	g.idle = false
	return freed
}

// SlackTimer hands returned slack to throttled CPUs
// (do_sched_cfs_slack_timer); freed as in PeriodTimer.
func (g *Group) SlackTimer(now time.Duration, freed []int) []int {
	g.slackAt = Never
	if g.refillWithin(now, g.rules.MinExpiration) || g.pool <= g.rules.Slice {
		return freed
	}
	g.step(Step{Kind: SlackTime, At: now, CPU: g.timerCPU})
	return g.distribute(now, freed)
}

// refill adds a period's quota (__refill_cfs_bandwidth_runtime). Without a
// burst what was left in the pool is lost; what is left in silos is not.
func (g *Group) refill(now time.Duration) {
	if !g.limit.Limited() {
		return
	}
	before := g.pool
	if g.rules.Has(EraD) {
		g.pool += g.limit.Quota
		if over := g.snap - g.pool; over > 0 {
			g.stat.BurstTime += over
			g.stat.Bursts++
		}
		g.pool = min(g.pool, g.limit.Quota+g.limit.Burst)
		g.snap = g.pool
	} else {
		g.pool = g.limit.Quota
	}
	g.expires = now + g.limit.Period
	g.seq++
	g.step(Step{Kind: Refilled, At: now, CPU: g.timerCPU, Amount: g.pool - before})
}

// distribute pays the debts of throttled CPUs plus 1 ns each, as far as the
// pool reaches (distribute_cfs_runtime): a CPU that wakes must soon ask for a
// slice. A debt that the pool cannot pay takes all of it.
func (g *Group) distribute(now time.Duration, freed []int) []int {
	kept := g.waiting[:0]
	for _, cpu := range g.waiting {
		s := &g.silos[cpu]
		if g.pool > 0 {
			amount := min(g.pool, 1-s.left)
			g.pool -= amount
			s.left += amount
			s.expires = g.expires
			g.step(Step{Kind: Given, At: now, CPU: cpu, Amount: amount})
		}
		if s.left <= 0 {
			kept = append(kept, cpu)
			continue
		}
		s.listed = false
		freed = append(freed, cpu)
	}
	g.waiting = kept
	return freed
}

// Configure writes a new limit (tg_set_cfs_bandwidth): a refill, and all silos
// and debts are forgotten. freed as in PeriodTimer; by the writing CPU, at
// once in every era. Errors are *Refused.
func (g *Group) Configure(now time.Duration, cpu int, l Limit, freed []int) ([]int, error) {
	if err := l.Check(g.rules); err != nil {
		return freed, err
	}
	g.limit = l
	g.refill(now)
	if l.Limited() {
		g.start(now, cpu)
	}
	fresh := time.Duration(0)
	if g.rules.Has(EraF) {
		fresh = 1
	}
	g.waiting = g.waiting[:0]
	for i := range g.silos {
		s := &g.silos[i]
		s.left, s.listed = fresh, false
		if s.throttled {
			freed = append(freed, i)
		}
	}
	return freed, nil
}

// renew gives a silo the deadline of the pool it was filled from.
func (g *Group) renew(s *silo) {
	switch {
	case g.rules.Has(EraC):
	case g.rules.Has(EraB):
		if s.seq != g.seq {
			s.seq, s.expires = g.seq, g.expires
		}
	case g.expires > s.expires:
		s.expires = g.expires
	}
}

// expire takes away what a CPU has kept from an earlier period
// (expire_cfs_rq_runtime), before 5.4. Era a compares the deadlines: equal ones
// mean that the CPU's clock is ahead of the refill, and just then, when the
// quota is still good, it is destroyed. Era b compares which refill it is from.
func (g *Group) expire(now time.Duration, cpu int) {
	if g.rules.Has(EraC) {
		return
	}
	s := &g.silos[cpu]
	clock := now
	if g.Skew != nil {
		clock += g.Skew[cpu]
	}
	if clock < s.expires || s.left < 0 {
		return
	}
	same := s.expires != g.expires
	if g.rules.Has(EraB) {
		same = s.seq == g.seq
	}
	if same {
		s.expires += g.rules.Tick
		return
	}
	if s.left > 0 {
		g.step(Step{Kind: Expired, At: now, CPU: cpu, Amount: s.left})
	}
	s.left = 0
}
