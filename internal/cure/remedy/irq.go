package remedy

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/topology"
)

// interruptsOff keeps interrupts off the CPUs that the plan gives away.
func (p *planner) interruptsOff() error {
	if p.r.Interrupts == nil {
		return nil
	}
	if p.f.Scope != "" && p.f.Scope != "/" {
		return p.refuse("interrupts belong to the whole host, not to the scope "+text.Name(p.f.Scope), "leave out --irqs or --scope")
	}
	pinned := p.plan.CPUs
	if idle, err := topology.ParseList(p.plan.Parameters[paramIdle]); err == nil {
		pinned = pinned.Union(idle)
	}
	rest := p.f.Machine.Online().Difference(p.f.Machine.Isolated()).Difference(pinned)
	for _, h := range p.f.Held {
		rest = rest.Difference(h.Withdrawn())
	}
	if rest.IsEmpty() {
		return p.refuse("no CPU would be left for interrupts", "leave out --irqs, or pin fewer CPUs")
	}
	p.r.Interrupts.Each(func(file string, now cpuset.CPUSet) {
		if !now.Intersection(pinned).IsEmpty() {
			p.interruptOff(file, now.String(), now, pinned, rest)
		}
	})
	p.plan.Parameters[paramIRQs] = "yes"
	p.warn("interrupts that cannot be moved (managed, bound to a CPU) stay; the others follow where it is moved to other CPUs later")
	if p.r.Interrupts.Balanced {
		p.warn("irqbalance runs and may put interrupts back: set IRQBALANCE_BANNED_CPULIST=%s in its environment and "+
			"start it again", pinned)
	}
	return nil
}

// interruptOff keeps one interrupt, which has these CPUs, off those taken. One that has no other gets the rest: all that
// is not exclusive.
func (p *planner) interruptOff(file, from string, has, taken, rest cpuset.CPUSet) {
	c := change.Change{Kind: change.KindIRQ, Path: "/", File: file, From: from, Op: change.OpRemoveCPUs, To: taken.String(),
		Why: "off the exclusive CPUs of " + p.target.Name}
	if has.Intersection(p.f.Machine.Online()).Difference(taken).IsEmpty() {
		c.Op, c.To = change.OpSet, rest.String()
	}
	p.plan.Changes = append(p.plan.Changes, c)
}
