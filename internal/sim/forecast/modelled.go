package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// A resized pool, or another number of shards, has other threads than the recording, so a replay of each
// thread's steps is impossible. Here work is a request that any thread of a pool can take. The model keeps
// when work came to the pool and how much it was; it does not keep which thread woke which.

// sharesWork reports whether any thread of a pool could take its work. The work must come from outside or
// from other threads, not from a thread's own periodic sleep.
func (l *Load) sharesWork(p *Pool) bool {
	some := false
	for _, w := range p.workloads {
		first, n := l.threadsOf(w)
		for _, t := range l.replay.Threads[first : first+n] {
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

// threadsOf returns the index of a workload's first thread, and how many it has.
func (l *Load) threadsOf(workload int) (first, n int) {
	for _, w := range l.recordedScenario.Workloads[:workload] {
		first += w.Threads
	}
	return first, l.recordedScenario.Workloads[workload].Threads
}

// resizable reports whether a pool has more threads than that, and any of them could take its work.
func (l *Load) resizable(p *Pool, threads int) bool { return p.threads > threads && l.sharesWork(p) }

// resized returns remedies that give a pool as many threads as the limit has CPUs: for the pool with the most
// work among those that have more, and for all such pools together if there are several.
func (l *Load) resized() (remedies []Remedy) {
	n := int(math.Ceil(l.limit))
	best, most, wide := -1, time.Duration(0), 0
	for i, p := range l.Pools {
		if !l.resizable(p, n) {
			continue
		}
		wide++
		if work := l.work(p); work > most {
			best, most = i, work
		}
	}
	if best >= 0 {
		remedies = append(remedies, Remedy{Name: Pools, CPUs: n, Pool: best})
	}
	if wide > 1 {
		remedies = append(remedies, Remedy{Name: Pools, CPUs: n, Pool: AllPools})
	}
	return remedies
}

// work is the CPU time that a pool's threads want.
func (l *Load) work(p *Pool) (work time.Duration) {
	for _, w := range p.workloads {
		first, n := l.threadsOf(w)
		for _, t := range l.replay.Threads[first : first+n] {
			for _, s := range t.Steps {
				if s.Kind == simulate.StepRun {
					work += min(s.For, l.window)
				}
			}
		}
	}
	return work
}

// withQueues returns a scenario and its replay in which the remedy's pools take their work from a queue.
func (l *Load) withQueues(r Remedy, s scenario.Scenario, replay simulate.Replay) (scenario.Scenario, simulate.Replay, []*Pool, error) {
	if r.Name == Shards {
		c := &s.Cgroups[l.binding]
		more := c.Limit.CPUs() * (1/r.Factor - 1)
		for _, i := range (Cgroups{l.container, l.binding, l.pods}).above(&s) {
			pod := &s.Cgroups[i].Limit
			pod.Quota += bandwidth.QuotaOf(more, pod.Period)
			pod.Burst = min(pod.Burst, pod.Quota)
		}
		c.Limit.Quota = bandwidth.QuotaOf(c.Limit.CPUs()/r.Factor, c.Limit.Period)
		c.Limit.Burst = time.Duration(float64(c.Limit.Burst) / r.Factor).Truncate(bandwidth.Unit)
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
		queued := r.Name == Shards && l.sharesWork(p) || r.Name == Pools && (i == r.Pool || r.Pool == AllPools && l.resizable(p, r.CPUs))
		for _, w := range p.workloads {
			of[w] = -1
			if queued {
				of[w] = p.workloads[0]
				workers[p.workloads[0]] = p.threads
				if r.Name == Pools {
					workers[p.workloads[0]] = r.CPUs
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
		case !own: // a neighbour's workload
			out.Threads = append(out.Threads, threads...)
		case into < 0:
			for _, t := range threads {
				t.Steps = withoutCauses(t.Steps)
				t.Again = t.Again && len(t.Steps) > 1 &&
					!slices.ContainsFunc(t.Steps[1:], func(s simulate.ReplayStep) bool { return s.Kind == simulate.StepUntil })
				out.Threads = append(out.Threads, t)
			}
		default:
			for _, t := range threads {
				pooled[into] = append(pooled[into], queuedRuns(t.Steps)...)
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
			queue = shardQueue(queue, r.Factor, l.window)
		}
		out.Queues[w] = queue
	}
	return s, out, l.Pools, nil
}

// withoutCauses replaces waits for other threads of the container by the recorded times.
func withoutCauses(steps []simulate.ReplayStep) []simulate.ReplayStep {
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

// queuedRuns returns the runs of a thread, each with the time at which it came.
func queuedRuns(steps []simulate.ReplayStep) []simulate.QueuedRun {
	var runs []simulate.QueuedRun
	came := time.Duration(0)
	fresh := true
	for _, s := range steps {
		switch s.Kind {
		case simulate.StepUntil, simulate.StepAwait:
			came, fresh = s.For, true
		case simulate.StepRun:
			if fresh {
				runs = append(runs, simulate.QueuedRun{At: came})
				fresh = false
			}
			last := &runs[len(runs)-1]
			last.For = min(simulate.Endless, last.For+s.For)
		}
	}
	return runs
}

// shardQueue returns the work of one shard when there are factor times as many. A factor of 2 leaves every
// second run. A factor of 0.5 adds the work of a second shard, which is this one's work shifted by half of
// the time.
func shardQueue(queue []simulate.QueuedRun, factor float64, window time.Duration) []simulate.QueuedRun {
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
