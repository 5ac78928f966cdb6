package cgroupmodel

import (
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Setting names one file of one cgroup. File "" is the cgroup itself, "cgroup.procs" the processes in it.
type Setting struct {
	Controller cgroup.Controller
	Path, File string
}

// Snapshot holds every setting, the existence of every cgroup, and the cgroup of every process. It has no counters.
type Snapshot map[Setting]string

// Snapshot takes one. Of controllers that share a hierarchy the first one counts for all.
func (k *Kernel) Snapshot() Snapshot {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := Snapshot{}
	for _, t := range k.allTrees() {
		c := t.controllers[0]
		descend(t.root, func(g *group) {
			s[Setting{c, g.path, ""}] = "exists"
			s[Setting{c, g.path, cgroup.FileProcs}] = k.list(t, g, false)
			for _, file := range k.settings(t, g) {
				if text, err := k.content(t, g, file); err == nil {
					s[Setting{c, g.path, file}] = text
				}
			}
		})
	}
	return s
}

// Settings returns the snapshot without the processes.
func (s Snapshot) Settings() Snapshot {
	only := Snapshot{}
	for setting, value := range s {
		if setting.File != cgroup.FileProcs {
			only[setting] = value
		}
	}
	return only
}

// Diff lists the differences in words, sorted.
func (s Snapshot) Diff(now Snapshot) []string {
	var all []string
	for setting, value := range s {
		name := fmt.Sprintf("%s %s %s", setting.Controller, setting.Path, setting.File)
		switch after, ok := now[setting]; {
		case !ok:
			all = append(all, fmt.Sprintf("%s: was %q, is gone", name, value))
		case after != value:
			all = append(all, fmt.Sprintf("%s: was %q, is %q", name, value, after))
		}
	}
	for setting, value := range now {
		if _, ok := s[setting]; !ok {
			all = append(all, fmt.Sprintf("%s %s %s: is new: %q", setting.Controller, setting.Path, setting.File, value))
		}
	}
	slices.Sort(all)
	return all
}

// Check lists tasks without a CPU or memory node, which must never exist, sorted.
func (k *Kernel) Check() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.trees[cgroup.CPUSet]
	if t == nil {
		return nil
	}
	var all []string
	for pid, p := range k.procs {
		g := p.at[t]
		if t.find(g.path) != g {
			all = append(all, fmt.Sprintf("pid %d is in the removed cgroup %s", pid, g.path))
		}
		if k.effective(t, g).IsEmpty() || k.effectiveMems(t, g).IsEmpty() {
			all = append(all, fmt.Sprintf("pid %d in %s has no CPU or memory node", pid, g.path))
		}
	}
	slices.Sort(all)
	return all
}
