package remedy

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/topology"
)

// whyInterruptsStay tells why a container whose interrupts are kept off its CPUs
// cannot be moved, since they could not follow; "" where they can.
func (f facts) whyInterruptsStay() string {
	switch {
	case f.Scope != "" && f.Scope != "/":
		return "interrupts are kept off its CPUs, and belong to the whole host, not to the scope"
	case f.Interrupts == nil:
		return "interrupts are kept off its CPUs, and cannot be read here"
	}
	return ""
}

// interruptsFollow keeps interrupts off the new CPUs, and lets them back on the
// old ones. with tells that another container exchanges CPUs with it.
func (m *mover) interruptsFollow(with bool) error {
	if !m.held.Interrupts {
		return nil
	}
	if why := m.f.whyInterruptsStay(); why != "" {
		return m.refuse(why, "")
	}
	rest := m.f.Machine.Online().Difference(m.f.Machine.Isolated()).Difference(m.taken).Difference(m.othersPins())
	if with {
		rest = rest.Difference(m.gone)
	}
	if rest.IsEmpty() {
		return m.refuse("no CPU would be left for interrupts", "")
	}
	m.f.Interrupts.Each(func(file string, now cpuset.CPUSet) {
		has, held := m.withoutThis(file)
		if !held {
			has = now
		}
		if held || !has.Intersection(m.taken).IsEmpty() {
			m.interruptOff(file, "", has, m.taken, rest)
		}
	})
	return nil
}

// withoutThis are the CPUs that an interrupt would have without the transaction
// that is replaced; false: that one does not hold it.
func (m *mover) withoutThis(file string) (cpuset.CPUSet, bool) {
	original, found, held := "", false, false
	var others []change.Hold
	for _, h := range m.f.Held {
		for _, c := range h.Changes {
			if c.Kind != change.KindIRQ || c.File != file {
				continue
			}
			if !found {
				original, found = c.From, true
			}
			if h.ID == m.held.ID {
				held = true
				continue
			}
			others = append(others, change.Hold{Op: c.Op, To: c.To})
		}
	}
	value, err := change.Fold(file, original, "", others)
	if err != nil {
		return cpuset.New(), held // nothing is left of it: it gets the rest
	}
	set, err := topology.ParseList(value)
	if err != nil {
		return cpuset.New(), held
	}
	return set, held
}
