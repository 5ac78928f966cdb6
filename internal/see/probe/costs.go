package probe

import (
	"cmp"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// EnableCosts has the kernel measure every run of every BPF program of this host, which itself takes some 20 ns a run,
// until Close or the function it gives is called.
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

// Costs tells what each program took since EnableCosts, dearest first; nil before. Programs that have not run are
// left out.
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
