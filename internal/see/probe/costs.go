package probe

import (
	"cmp"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// EnableCosts has the kernel measure every run of every BPF program of this host, which itself costs some 20 ns a run.
// It ends with Close or with the function that it returns.
func (p *Probe) EnableCosts() (stop func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.stats == nil {
		s, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
		if err != nil {
			return nil, refused("measure the run time of BPF programs (kernel.bpf_stats)", err)
		}
		p.stats = s
		p.costs = p.total()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.stats != nil {
			p.stats.Close()
			p.stats = nil
		}
	}, nil
}

// Costs returns the time that each program took since EnableCosts, most expensive first; nil before. It leaves out
// programs that have not run.
func (p *Probe) Costs() []Cost {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.costs == nil {
		return nil
	}
	var costs []Cost
	for name, now := range p.total() {
		was := p.costs[name]
		now.Runs -= was.Runs
		now.Total -= was.Total
		now.Missed -= was.Missed
		if now.Runs+now.Missed > 0 {
			costs = append(costs, now)
		}
	}
	slices.SortFunc(costs, func(a, b Cost) int { return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Program, b.Program)) })
	return costs
}

func (p *Probe) total() map[string]Cost {
	all := map[string]Cost{}
	for name, program := range p.coll.Programs {
		if s, err := program.Stats(); err == nil {
			all[name] = Cost{name, s.RunCount, time.Duration(s.Runtime), s.RecursionMisses}
		}
	}
	return all
}
