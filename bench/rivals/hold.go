package main

import (
	"context"
	"os"
	"sync"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/rivals/rules"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
)

// holder keeps what a rule asks for in force.
type holder struct {
	name  string
	group *sandbox.Group
	host  []int // CPUs of the host that containers share
	spec  rules.Resources

	mu               sync.Mutex
	now              rules.Setting // in force
	changed          time.Time
	writes, refusals int
	firstRefusal     string
}

func newHolder(name string, group *sandbox.Group, host []int, limitCPUs float64) *holder {
	of := rules.Resources{RequestCPUs: limitCPUs, LimitCPUs: limitCPUs} // without a request, Kubernetes takes the limit as that
	return &holder{name: name, group: group, host: host, spec: of, now: asWritten(of)}
}

// put writes a setting. The burst and the quota are written each by itself, the burst first, so that one that is refused leaves the other:
// as koordlet does. What other projects write does not depend on it.
func (h *holder) put(to rules.Setting) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.now
	if to.Limit != was.Limit {
		both := to.Limit
		if both.Limited() && both.Burst > both.Quota {
			// The kernel decides; the part that it takes is written without the one that it refuses.
			h.writes++
			if err := h.group.SetLimit(both); err == nil {
				h.now.Limit = both
			} else {
				h.refuse(err)
				both.Burst = min(was.Limit.Burst, max(both.Quota, 0))
			}
		}
		if both != h.now.Limit {
			h.writes++
			if err := h.group.SetLimit(both); err != nil {
				h.refuse(err)
			} else {
				h.now.Limit = both
			}
		}
	}
	if to.ExclusiveCPUs != was.ExclusiveCPUs {
		h.writes++
		if err := h.group.SetCPUs(cpuset.New(h.host[:to.ExclusiveCPUs]...)); err != nil {
			return err
		}
		h.now.ExclusiveCPUs = to.ExclusiveCPUs
	}
	if to.RequestCPUs != was.RequestCPUs && to.RequestCPUs > 0 {
		const sharesPerCPU = 1024
		h.writes++
		if err := h.group.SetShares(uint64(to.RequestCPUs * sharesPerCPU)); err != nil {
			return err
		}
	}
	h.now.RequestCPUs = to.RequestCPUs
	if h.now != was {
		h.changed = time.Now()
	}
	return nil
}

func (h *holder) refuse(err error) {
	if h.refusals++; h.firstRefusal == "" {
		h.firstRefusal = err.Error()
	}
}

// inForce is what is in force, and since when.
func (h *holder) inForce() (rules.Setting, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now, h.changed
}

// grantedCPUs are those that the limit in force grants, or all that it may run on.
func (h *holder) grantedCPUs() float64 {
	s, _ := h.inForce()
	most := float64(len(h.host))
	if s.ExclusiveCPUs > 0 {
		most = float64(s.ExclusiveCPUs)
	}
	if s.Limit.Limited() {
		most = min(most, s.Limit.CPUs())
	}
	return most
}

// hold asks a rule at its cadence until ctx ends, and returns what went wrong with reading or writing.
func (h *holder) hold(ctx context.Context, r rules.Rule) error {
	began := time.Now()
	last, err := h.group.Stat()
	if err != nil {
		return err
	}
	lastAt := began
	var busy []nodeUse
	for tick := r.Cadence(); ctx.Err() == nil; {
		if clock.Sleep(ctx, time.Until(lastAt.Add(tick))) != nil {
			break
		}
		stat, err := h.group.Stat()
		if err != nil {
			return err
		}
		host, err := procfs.ReadStat(os.DirFS("/proc"))
		if err != nil {
			return err
		}
		at := time.Now()
		busy = append(busy, nodeUse{at, host.Total.Busy()})
		now, _ := h.inForce()
		var to rules.Setting
		to, r = r.Next(rules.Observed{At: at.Sub(began), Spec: h.spec, Now: now, Used: used(stat) - used(last), For: at.Sub(lastAt),
			Periods: int64(stat.Periods - last.Periods), Throttled: int64(stat.ThrottledPeriods - last.ThrottledPeriods),
			Node: nodeOf(busy, len(h.host))})
		if err := h.put(to); err != nil {
			return err
		}
		last, lastAt = stat, at
	}
	return nil
}

// used is the CPU time of a cgroup; 0: not measured.
func used(s cgroup.Stat) time.Duration {
	if s.Usage == nil {
		return 0
	}
	return *s.Usage
}

// nodeUse is the CPU time of the whole host at a time.
type nodeUse struct {
	at   time.Time
	busy time.Duration
}

// nodeOf is the use of the host over its last five seconds; nil: it is not known for so long.
func nodeOf(uses []nodeUse, cpus int) *rules.Node {
	const window = 5 * time.Second
	newest := uses[len(uses)-1]
	for i := len(uses) - 1; i >= 0; i-- {
		if over := newest.at.Sub(uses[i].at); over >= window {
			return &rules.Node{SharedCPUs: float64(cpus), UsedCPUs: float64(newest.busy-uses[i].busy) / float64(over)}
		}
	}
	return nil
}

// widest is the most CPU time of containers in a tenth of a second, and what they are granted on average, in CPUs, until ctx ends.
func widest(ctx context.Context, containers []*holder) (most, granted float64, err error) {
	all := func() (sum time.Duration, err error) {
		for _, h := range containers {
			stat, err := h.group.Stat()
			if err != nil {
				return 0, err
			}
			sum += used(stat)
		}
		return sum, nil
	}
	last, err := all()
	if err != nil {
		return 0, 0, err
	}
	at, n := time.Now(), 0.0
	for clock.Sleep(ctx, bandwidth.DefaultPeriod) == nil {
		sum, err := all()
		if err != nil {
			return 0, 0, err
		}
		now := time.Now()
		if over := now.Sub(at); over > 0 {
			most = max(most, float64(sum-last)/float64(over))
		}
		for _, h := range containers {
			granted += h.grantedCPUs()
		}
		n, last, at = n+1, sum, now
	}
	if n > 0 {
		granted /= n
	}
	return most, granted, nil
}
