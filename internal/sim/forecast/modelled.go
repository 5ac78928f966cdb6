package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// Work as requests that any thread of a pool can take. A resized pool, or another shard, has other threads than were
// recorded: what each did cannot be replayed. What is kept is when work came to the pool and how much it was; who woke
// whom is not.

// takes says whether a pool's work could be taken by any of its threads: it comes from outside or from other threads,
// and not with a thread's own sleeping habit.
func (l *Load) takes(p *Pool) bool {
	some := false
	for _, w := range p.Workloads {
		first, n := l.threadsOf(w)
		for _, t := range l.Replay.Threads[first : first+n] {
			for _, s := range t.Steps {
				if s.Kind == simulate.StepSleep {
					return false
				}
				some = some || s.Kind == simulate.StepRun
			}
		}
	}
	return some
}

// threadsOf are a workload's: the first one's index, and how many.
func (l *Load) threadsOf(workload int) (first, n int) {
	for _, w := range l.Scenario.Workloads[:workload] {
		first += w.Threads
	}
	return first, l.Scenario.Workloads[workload].Threads
}

// wide says whether a pool has more threads than so many, and any of them could take its work.
func (l *Load) wide(p *Pool, threads int) bool { return p.Threads > threads && l.takes(p) }

// resized are the remedies of the pool that is wider than the limit and does most work: as many threads as the limit has
// CPUs; and of all such pools together, where there are several.
func (l *Load) resized() (all []Remedy) {
	n := int(math.Ceil(l.Limit))
	best, most, wide := -1, time.Duration(0), 0
	for i, p := range l.Pools {
		if !l.wide(p, n) {
			continue
		}
		wide++
		if work := l.work(p); work > most {
			best, most = i, work
		}
	}
	if best >= 0 {
		all = append(all, Remedy{Name: Pools, CPUs: n, Pool: best})
	}
	if wide > 1 {
		all = append(all, Remedy{Name: Pools, CPUs: n, Pool: AllPools})
	}
	return all
}

// work is the CPU time that a pool's threads want.
func (l *Load) work(p *Pool) (work time.Duration) {
	for _, w := range p.Workloads {
		first, n := l.threadsOf(w)
		for _, t := range l.Replay.Threads[first : first+n] {
			for _, s := range t.Steps {
				if s.Kind == simulate.StepRun {
					work += min(s.For, l.Window)
				}
			}
		}
	}
	return work
}

// modelled is a scenario with its replay in which pools take their work from a queue.
func (l *Load) modelled(r Remedy, s scenario.Scenario, replay simulate.Replay) (scenario.Scenario, simulate.Replay, []*Pool, error) {
	if r.Name == Shards {
		c := &s.Cgroups[l.Binding]
		c.Limit.Quota = time.Duration(float64(c.Limit.Quota) / r.Factor)
		c.Limit.Burst = time.Duration(float64(c.Limit.Burst) / r.Factor)
		if err := c.Limit.Check(&s.Host.Rules); err != nil {
			return s, replay, nil, fmt.Errorf("%s", err.Error())
		}
	}
	s.Workloads = slices.Clone(s.Workloads)
	out := simulate.Replay{Queues: make([][]simulate.QueuedRun, len(s.Workloads))}
	pooled := map[int][]simulate.QueuedRun{} // by the pool's first workload
	workers := map[int]int{}
	of := map[int]int{}
	for i, p := range l.Pools {
		queued := r.Name == Shards && l.takes(p) || r.Name == Pools && (i == r.Pool || r.Pool == AllPools && l.wide(p, r.CPUs))
		for _, w := range p.Workloads {
			of[w] = -1
			if queued {
				of[w] = p.Workloads[0]
				workers[p.Workloads[0]] = p.Threads
				if r.Name == Pools {
					workers[p.Workloads[0]] = r.CPUs
				}
			}
		}
	}
	at := 0
	for w := range s.Workloads {
		threads := replay.Threads[at : at+s.Workloads[w].Threads]
		at += len(threads)
		into, own := of[w]
		switch {
		case !own: // a neighbour's
			out.Threads = append(out.Threads, threads...)
		case into < 0:
			for _, t := range threads {
				t.Steps = timed(t.Steps)
				t.Again = t.Again && len(t.Steps) > 1 && !slices.ContainsFunc(t.Steps[1:], func(s simulate.ReplayStep) bool { return s.Kind == simulate.StepUntil })
				out.Threads = append(out.Threads, t)
			}
		default:
			for _, t := range threads {
				pooled[into] = append(pooled[into], runs(t.Steps)...)
			}
			s.Workloads[w].Threads = 0
			if w == into {
				s.Workloads[w].Threads = workers[w]
				for i := range workers[w] {
					out.Threads = append(out.Threads, simulate.ReplayThread{
						CPU: threads[i%len(threads)].CPU, Steps: []simulate.ReplayStep{{Kind: simulate.StepTake}},
					})
				}
			}
		}
	}
	for w, queue := range pooled {
		slices.SortStableFunc(queue, func(a, b simulate.QueuedRun) int { return cmp.Compare(a.At, b.At) })
		if r.Name == Shards {
			queue = sharded(queue, r.Factor, l.Window)
		}
		out.Queues[w] = queue
	}
	return s, out, l.Pools, nil
}

// timed are steps without causes within the container: everything comes when it came.
func timed(steps []simulate.ReplayStep) []simulate.ReplayStep {
	var out []simulate.ReplayStep
	for _, s := range steps {
		switch s.Kind {
		case simulate.StepWake:
		case simulate.StepAwait:
			out = append(out, simulate.ReplayStep{Kind: simulate.StepUntil, For: s.For})
		default:
			out = append(out, s)
		}
	}
	return out
}

// runs are the work of a thread, and when each came.
func runs(steps []simulate.ReplayStep) []simulate.QueuedRun {
	var all []simulate.QueuedRun
	came := time.Duration(0)
	fresh := true
	for _, s := range steps {
		switch s.Kind {
		case simulate.StepUntil, simulate.StepAwait:
			came, fresh = s.For, true
		case simulate.StepRun:
			if fresh {
				all = append(all, simulate.QueuedRun{At: came})
				fresh = false
			}
			last := &all[len(all)-1]
			last.For = min(simulate.Endless, last.For+s.For)
		}
	}
	return all
}

// sharded is what one of so many times as many shards gets of the work: every second run of two; or, of half as many,
// the work of two, the other one's being this one's half of the time later.
func sharded(queue []simulate.QueuedRun, factor float64, window time.Duration) []simulate.QueuedRun {
	var out []simulate.QueuedRun
	if factor >= 1 {
		every := int(math.Round(factor))
		for i := 0; i < len(queue); i += every {
			out = append(out, queue[i])
		}
		return out
	}
	copies := int(math.Round(1 / factor))
	for k := range copies {
		shift := window * time.Duration(k) / time.Duration(copies)
		for _, run := range queue {
			if k > 0 && run.For >= simulate.Endless {
				continue
			}
			run.At = (run.At + shift) % window
			out = append(out, run)
		}
	}
	slices.SortStableFunc(out, func(a, b simulate.QueuedRun) int { return cmp.Compare(a.At, b.At) })
	return out
}
