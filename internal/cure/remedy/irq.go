package remedy

import (
	"io/fs"
	"strconv"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/txn/change"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/topology"
)

// Interrupts are a host's, as they were found.
type Interrupts struct {
	All []irq.Interrupt
	// Default are the CPUs of interrupts that are requested later.
	Default cpuset.CPUSet
	// Balanced: irqbalance runs and spreads them anew every ten seconds.
	Balanced bool
}

// each visits the CPUs of those that are requested later, and of every interrupt.
func (i Interrupts) each(visit func(file string, now cpuset.CPUSet)) {
	visit(irq.Default, i.Default)
	for _, one := range i.All {
		visit(irq.File(one.Number), one.CPUs)
	}
}

// ReadInterrupts looks at a host's interrupts; root stands for "/".
func ReadInterrupts(from irq.FS, root fs.FS) (Interrupts, error) {
	all, err := from.Interrupts()
	if err != nil {
		return Interrupts{}, err
	}
	text, err := from.Read(irq.Default)
	if err != nil {
		return Interrupts{}, err
	}
	set, err := topology.ParseList(text)
	return Interrupts{All: all, Default: set, Balanced: running(root, "irqbalance")}, err
}

// running tells whether a process of this name can be seen.
func running(root fs.FS, name string) bool {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return false
	}
	for _, e := range entries {
		if pid, err := strconv.ParseUint(e.Name(), 10, 31); err == nil && comm(root, int(pid)) == name {
			return true
		}
	}
	return false
}

// interruptsOff keeps interrupts off the CPUs that the plan gives away.
func (p *planner) interruptsOff() error {
	if p.r.Interrupts == nil {
		return nil
	}
	if p.f.Scope != "" && p.f.Scope != "/" {
		return p.refuse("interrupts belong to the whole host, not to the scope "+quoted(p.f.Scope), "leave out --irqs or --scope")
	}
	pinned := p.plan.CPUs
	if idle, err := topology.ParseList(p.plan.Parameters[paramIdle]); err == nil {
		pinned = pinned.Union(idle)
	}
	rest := p.f.Machine.Online().Difference(p.f.Machine.Isolated()).Difference(pinned)
	for _, h := range p.f.Held {
		rest = rest.Difference(Withdrawn(h))
	}
	if rest.IsEmpty() {
		return p.refuse("no CPU would be left for interrupts", "leave out --irqs, or pin fewer CPUs")
	}
	p.r.Interrupts.each(func(file string, now cpuset.CPUSet) {
		if !now.Intersection(pinned).IsEmpty() {
			p.interruptOff(file, now.String(), now, pinned, rest)
		}
	})
	p.plan.Parameters[paramIRQs] = "yes"
	p.warn("interrupts that cannot be moved (managed, bound to a CPU) stay; the others follow where it is moved to other CPUs later")
	if p.r.Interrupts.Balanced {
		p.warn("irqbalance runs and may put interrupts back: set IRQBALANCE_BANNED_CPULIST=%s in its environment and start it again", pinned)
	}
	return nil
}

// interruptOff keeps one interrupt, which has these CPUs, off those taken. One that has no other gets the rest: all that
// nobody has alone.
func (p *planner) interruptOff(file, from string, has, taken, rest cpuset.CPUSet) {
	c := change.Change{Kind: change.KindIRQ, Path: "/", File: file, From: from, Op: change.OpRemoveCPUs, To: taken.String(),
		Why: "off the exclusive CPUs of " + p.target.Name}
	if has.Intersection(p.f.Machine.Online()).Difference(taken).IsEmpty() {
		c.Op, c.To = change.OpSet, rest.String()
	}
	p.plan.Changes = append(p.plan.Changes, c)
}
