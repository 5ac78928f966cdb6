package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// roleGap is by which factor the mean runs of two threads of one name must differ for the threads to have different
	// roles: a server and the process that it forked to save, or a session that looks up and one that reports.
	roleGap = 8.0
	// leastRole is the share of a pool's CPU time from which on a thread tells roles apart; or it has minRuns runs.
	leastRole = 0.02
	// longRuns names the role of the longer runs. The other one keeps the pool's name.
	longRuns = " (long runs)"
)

// splitRoles parts the threads of a pool whose runs are of two very different lengths, although their names are the
// same. Threads that take their work from one queue have runs of the same length on the mean, because each of them does
// any work. In which order the threads of both roles together were woken tells nothing of either.
func (b *builder) splitRoles() {
	if b.runs == maxRuns {
		return // not every run was kept, so that the pools' distributions cannot be parted
	}
	for _, p := range slices.Clone(b.measured) {
		long := b.longRole(p)
		if len(long) == 0 || len(b.measured) == maxPools {
			continue
		}
		role := &Pool{Name: p.Name + longRuns, process: p.process, recorded: newTimes()}
		b.measured = append(b.measured, role)
		for _, t := range long {
			b.joinPool(t, role)
		}
		b.queueOf(p).forget()
		p.recorded = newTimes()
		for _, t := range b.order {
			if t.pool != p && t.pool != role {
				continue
			}
			for _, r := range t.ended {
				t.pool.recorded.Delay.Add(time.Duration(r.delay))
				t.pool.recorded.Response.Add(time.Duration(r.response))
			}
		}
	}
}

// meanRun is the CPU time of a thread's runs on the mean, in ns. One that never slept is one run.
func (t *thread) meanRun() float64 { return float64(t.total) / float64(max(1, len(t.ended))) }

// longRole are the threads of a pool with the longer runs; nil: all of them have one role. Threads with little CPU time
// do not tell where the roles part: they go to the side on which they are.
func (b *builder) longRole(p *Pool) []*thread {
	var all, telling []*thread
	sum := int64(0)
	for _, t := range b.order {
		if t.pool == p && t.total > 0 {
			all = append(all, t)
			sum += t.total
		}
	}
	for _, t := range all {
		if float64(t.total) >= leastRole*float64(sum) || len(t.ended) >= minRuns {
			telling = append(telling, t)
		}
	}
	slices.SortStableFunc(telling, func(x, y *thread) int { return cmp.Compare(x.meanRun(), y.meanRun()) })
	from, widest, runs := 0.0, roleGap, 0
	for i := 1; i < len(telling); i++ {
		short, long := telling[i-1].meanRun(), telling[i].meanRun()
		if runs += len(telling[i-1].ended); long >= widest*short && runs >= minRuns {
			from, widest = math.Sqrt(short*long), long/short
		}
	}
	if from == 0 {
		return nil
	}
	return slices.DeleteFunc(all, func(t *thread) bool { return t.meanRun() < from })
}
