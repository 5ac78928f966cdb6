package remedy

import (
	"io/fs"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/change"
	"github.com/unthrottle/unthrottle/irq"
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
		if _, err := strconv.ParseUint(e.Name(), 10, 31); err != nil {
			continue
		}
		if comm, err := fs.ReadFile(root, "proc/"+e.Name()+"/comm"); err == nil && strings.TrimSpace(string(comm)) == name {
			return true
		}
	}
	return false
}

// interruptsOff keeps interrupts off the CPUs that the plan gives away. One that has no other CPU gets all that nobody
// has alone.
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
	p.interruptOff(irq.Default, p.r.Interrupts.Default, pinned, rest)
	for _, i := range p.r.Interrupts.All {
		p.interruptOff(irq.File(i.Number), i.CPUs, pinned, rest)
	}
	p.plan.Parameters[paramIRQs] = "yes"
	p.warn("interrupts that cannot be moved (managed, bound to a CPU) stay; the others follow where it is moved to other CPUs later")
	if p.r.Interrupts.Balanced {
		p.warn("irqbalance runs and may put interrupts back: set IRQBALANCE_BANNED_CPULIST=%s in its environment and start it again", pinned)
	}
	return nil
}

func (p *planner) interruptOff(file string, now, pinned, rest cpuset.CPUSet) {
	if now.Intersection(pinned).IsEmpty() {
		return
	}
	c := change.Change{Kind: change.KindIRQ, Path: "/", File: file, From: now.String(), Op: change.OpRemoveCPUs, To: pinned.String(),
		Why: "off the exclusive CPUs of " + p.target.Name}
	if now.Intersection(p.f.Machine.Online()).Difference(pinned).IsEmpty() {
		c.Op, c.To = change.OpSet, rest.String()
	}
	p.plan.Changes = append(p.plan.Changes, c)
}
