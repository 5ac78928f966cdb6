package bandwidth

import "time"

// PeriodTimer ends a period (sched_cfs_period_timer). It counts the period, refills the pool and serves the
// throttled CPUs in the order of their throttling. It appends the CPUs that may run again to freed and
// returns it. The caller then calls Unthrottle for each of them: at once for TimerCPU, and for the others
// when the interrupt arrives if the rules are UnthrottlesByInterrupt, else at once too.
//
// The kernel doubles a period that is too short for its timer; here the timer is always on time.
func (g *Group) PeriodTimer(now time.Duration, freed []int) []int {
	throttled := len(g.waiting) > 0
	g.stat.Periods++
	if g.used {
		g.stat.ActivePeriods++
	}
	g.used = throttled
	g.step(Step{Kind: PeriodEnd, At: now, CPU: g.timerCPU, Amount: time.Duration(len(g.waiting))})
	deactivate := g.idle && !throttled
	// From 5.14 on an idle group gets one more refill, so that it can burst.
	if !deactivate || g.rules.Has(Since5_14) {
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

// SlackTimer distributes returned slack to throttled CPUs (do_sched_cfs_slack_timer). freed is as in
// PeriodTimer.
func (g *Group) SlackTimer(now time.Duration, freed []int) []int {
	g.slackAt = Never
	if g.refillWithin(now, g.rules.MinExpiration) || g.pool <= g.rules.Slice {
		return freed
	}
	g.step(Step{Kind: SlackTime, At: now, CPU: g.timerCPU})
	return g.distribute(now, freed)
}

// refill adds a period's quota to the pool (__refill_cfs_bandwidth_runtime). Without a burst the rest of the
// old pool is lost; the silos keep theirs.
func (g *Group) refill(now time.Duration) {
	if !g.limit.Limited() {
		return
	}
	before := g.pool
	if g.rules.Has(Since5_14) {
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

// distribute pays the debts of throttled CPUs plus 1 ns each, as far as the pool reaches
// (distribute_cfs_runtime). With 1 ns a CPU must soon ask for a slice. A debt larger than the pool takes all
// of it.
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

// Configure writes a new limit (tg_set_cfs_bandwidth). It refills the pool and clears all silos and debts.
// freed is as in PeriodTimer, but the caller unthrottles all of them at once under all rules. The error is a
// *Refused, and the old limit then stays.
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
	if g.rules.Has(Since6_18) {
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

// renew gives a silo the deadline of the pool that filled it.
func (g *Group) renew(s *silo) {
	switch {
	case g.rules.Has(Since5_4):
	case g.rules.Has(Since4_18):
		if s.seq != g.seq {
			s.seq, s.expires = g.seq, g.expires
		}
	case g.expires > s.expires:
		s.expires = g.expires
	}
}

// expire drops the quota that a CPU kept from an earlier period (expire_cfs_rq_runtime), before 5.4. From
// 3.16 to 4.17 the kernel compares the deadlines: equal ones mean that the CPU's clock is ahead of the
// refill. In just that case it drops quota that is still valid. From 4.18 to 5.3 it compares which refill
// filled the silo.
func (g *Group) expire(now time.Duration, cpu int) {
	if g.rules.Has(Since5_4) {
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
	if g.rules.Has(Since4_18) {
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
