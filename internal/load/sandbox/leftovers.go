package sandbox

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Leftovers are the sandboxes of killed runs.
type Leftovers struct {
	// Removed is the number of runs whose cgroups were removed.
	Removed int
	// Stay has a sentence for each cgroup that could not be removed.
	Stay []string
}

// Notes returns what a reader of the experiment's output should know; nil: nothing.
func (l Leftovers) Notes() []string {
	if l.Removed == 0 {
		return l.Stay
	}
	return append([]string{fmt.Sprintf("the cgroups of %d killed runs were removed", l.Removed)}, l.Stay...)
}

// RemoveLeftovers removes the sandboxes below the scope whose name has one of the
// prefixes and whose owner has ended.
func RemoveLeftovers(host *cgroup.Host, scope string, prefixes ...string) (leftovers Leftovers, err error) {
	p, err := findPlaces(host, nil, scope)
	if err != nil {
		return leftovers, err
	}
	self, err := ourselves("/proc", "")
	if err != nil {
		return leftovers, err
	}
	for _, prefix := range prefixes {
		l := p.removeLeftovers("/proc", prefix, self.pidNS)
		leftovers.Removed += l.Removed
		leftovers.Stay = append(leftovers.Stay, l.Stay...)
	}
	return leftovers, nil
}

// leftoverPatience is how long the leftovers of one hierarchy may take to become
// empty: the children of a killed run end when its pipe closes.
const leftoverPatience = 3 * time.Second

// removeLeftovers removes the sandboxes of that prefix whose owner has ended. It
// ends no process for that.
func (p *places) removeLeftovers(proc, prefix string, ourNS uint64) (l Leftovers) {
	runs := map[string]bool{}
	for _, h := range p.all() {
		all, err := h.children(h.path(p.scope))
		if err != nil {
			l.Stay = append(l.Stay, "leftovers of killed runs were not looked for: "+err.Error())
			continue
		}
		patience := leftoverPatience
		for _, path := range all {
			if o, ours := parseOwner(prefix, cgroup.Base(path)); !ours || !o.gone(proc, ourNS) {
				continue
			}
			if err := h.removeTree(path, &patience); err != nil {
				l.Stay = append(l.Stay, "a leftover of a killed run stays: "+err.Error())
				continue
			}
			runs[cgroup.Base(path)] = true
		}
	}
	l.Removed = len(runs)
	return l
}
