package placement

import (
	"errors"
	"fmt"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// CheckState reports everything that is wrong with a state, whoever made it:
// exclusive CPUs that two have, that are reserved, unavailable, isolated,
// offline or not there; containers with another number of CPUs than they asked
// for, with parts of cores where whole ones were asked for, or with siblings
// that others use where they were to idle; floating containers outside the
// shared pool; an empty shared pool. Containers without CPUs are passed over.
// It shares no code with the placer, so that each tests the other.
func CheckState(s State) error {
	var wrong []error
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("placement: "+format, args...))
	}
	able := map[int]bool{}
	for _, c := range s.Machine.CPUs {
		if c.Online && !c.Isolated && !s.Reserved.Contains(c.ID) && !s.Unavailable.Contains(c.ID) {
			able[c.ID] = true
		}
	}
	owner := map[int]string{}
	claim := func(c Container, set cpuset.CPUSet) {
		for _, id := range set.List() {
			if other, ok := owner[id]; ok {
				say("CPU %d is %s's and %s's", id, other, c.Name)
			}
			if !able[id] {
				say("CPU %d of %s is reserved, unavailable, isolated, offline or not there", id, c.Name)
			}
			owner[id] = c.Name
		}
	}
	for _, c := range s.Containers {
		if c.Class == Floating || c.Class == Secondary || c.Current.IsEmpty() {
			continue
		}
		claim(c, c.Current)
		claim(c, c.Idle)
		checkContainer(s.Machine, c, say)
	}
	pool := map[int]bool{}
	for id := range able {
		if _, taken := owner[id]; !taken {
			pool[id] = true
		}
	}
	if len(pool) == 0 && len(able) > 0 {
		say("the shared pool is empty")
	}
	for _, c := range s.Containers {
		if c.Class != Floating || c.Current.IsEmpty() {
			continue
		}
		for _, id := range c.Current.List() {
			if !pool[id] {
				say("CPU %d of %s is not in the shared pool", id, c.Name)
			}
		}
		want := int(c.CPUs)
		if float64(want) < c.CPUs-1e-9 {
			want++
		}
		if got := c.Current.Size(); got != want && got != len(pool) {
			say("%s may use %d CPUs, %d wanted", c.Name, got, want)
		}
	}
	return errors.Join(wrong...)
}

// checkContainer checks what concerns one container with CPUs of its own.
func checkContainer(m topology.Machine, c Container, say func(string, ...any)) {
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
	for _, a := range m.CPUs {
		if !c.Current.Contains(a.ID) || a.Core == topology.Unknown {
			continue
		}
		for _, b := range m.CPUs {
			if b.ID == a.ID || b.Core != a.Core || !b.Online {
				continue
			}
			if c.FullCores && !c.Current.Contains(b.ID) && !c.Idle.Contains(b.ID) {
				say("%s has CPU %d and not its sibling %d", c.Name, a.ID, b.ID)
			}
			if c.IdleSiblings && !c.Idle.Contains(b.ID) {
				say("%s has CPU %d, whose sibling %d does not idle", c.Name, a.ID, b.ID)
			}
		}
	}
}
