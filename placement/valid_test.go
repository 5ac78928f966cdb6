package placement

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// checkState reports everything that is wrong with a state of any origin:
// exclusive CPUs that two have, that are reserved, unavailable, isolated,
// offline or not there; containers with another number of CPUs than they asked
// for, with parts of cores where whole ones were asked for, or with siblings
// that others use where they were to idle; floating containers outside the
// shared pool; an empty shared pool. Containers without CPUs are passed over.
// It shares no code with the placer, so that each tests the other.
func checkState(s State) error {
	var wrong []error
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("placement: "+format, args...))
	}
	v := newValidator(s)
	for _, c := range s.Containers {
		if c.Class == Floating || c.Class == Secondary || c.Current.IsEmpty() {
			continue
		}
		v.claim(c, c.Current, say)
		v.claim(c, c.Idle, say)
		v.checkContainer(c, say)
	}
	pool := 0
	for id, able := range v.able {
		if able && v.owner[id] == "" {
			pool++
		}
	}
	if pool == 0 && slices.Contains(v.able, true) {
		say("the shared pool is empty")
	}
	for _, c := range s.Containers {
		if c.Class != Floating || c.Current.IsEmpty() {
			continue
		}
		for _, id := range c.Current.List() {
			if !v.may(id) || v.owner[id] != "" {
				say("CPU %d of %s is not in the shared pool", id, c.Name)
			}
		}
		want := int(c.CPUs)
		if float64(want) < c.CPUs-1e-9 {
			want++
		}
		if got := c.Current.Size(); got != want && got != pool {
			say("%s may use %d CPUs, %d wanted", c.Name, got, want)
		}
	}
	return errors.Join(wrong...)
}

// validator is what checkState knows of each CPU, by its number.
type validator struct {
	machine topology.Machine
	able    []bool   // may be given
	owner   []string // "=" and a name; "": unowned
	cores   map[topology.ID][]int
}

func newValidator(s State) *validator {
	top := 0
	for _, c := range s.Machine.CPUs {
		top = max(top, c.ID+1)
	}
	v := &validator{machine: s.Machine, able: make([]bool, top), owner: make([]string, top)}
	for _, c := range s.Machine.CPUs {
		v.able[c.ID] = c.Online && !c.Isolated && !s.Reserved.Contains(c.ID) && !s.Unavailable.Contains(c.ID)
	}
	return v
}

func (v *validator) may(id int) bool { return id >= 0 && id < len(v.able) && v.able[id] }

// claim notes whose CPUs these are.
func (v *validator) claim(c Container, set cpuset.CPUSet, say func(string, ...any)) {
	for _, id := range set.List() {
		if !v.may(id) {
			say("CPU %d of %s is reserved, unavailable, isolated, offline or not there", id, c.Name)
			continue
		}
		if other := v.owner[id]; other != "" {
			say("CPU %d is %s's and %s's", id, other[1:], c.Name)
		}
		v.owner[id] = "=" + c.Name
	}
}

// onlineCores are the online CPUs of each core that the kernel tells.
func onlineCores(m topology.Machine) map[topology.ID][]int {
	cores := map[topology.ID][]int{}
	for _, c := range m.CPUs {
		if c.Online && c.Core != topology.Unknown {
			cores[c.Core] = append(cores[c.Core], c.ID)
		}
	}
	return cores
}

// checkContainer checks what concerns one container with CPUs of its own.
func (v *validator) checkContainer(c Container, say func(string, ...any)) {
	want := int(c.CPUs + 1e-9)
	if c.Class != Hybrid && float64(want) < c.CPUs-1e-9 {
		want++
	}
	if got := c.Current.Size(); got != want {
		say("%s has %d CPUs (%s), %d wanted", c.Name, got, c.Current, want)
	}
	if !c.FullCores && !c.IdleSiblings {
		return
	}
	if v.cores == nil {
		v.cores = onlineCores(v.machine)
	}
	for _, a := range v.machine.CPUs {
		if !c.Current.Contains(a.ID) {
			continue
		}
		for _, b := range v.cores[a.Core] {
			if b == a.ID {
				continue
			}
			if c.FullCores && !c.Current.Contains(b) && !c.Idle.Contains(b) {
				say("%s has CPU %d and not its sibling %d", c.Name, a.ID, b)
			}
			if c.IdleSiblings && !c.Idle.Contains(b) {
				say("%s has CPU %d, whose sibling %d does not idle", c.Name, a.ID, b)
			}
		}
	}
}
