package container

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// List returns what runs here, in the order of the cgroup tree. It has one entry per container (its topmost cgroup),
// per systemd unit that is no container, and per leaf cgroup outside both. It leaves out the root and units that only
// group others. Of a scope inside a container it has the leaves. It skips cgroups that vanish meanwhile. Beyond 262,144
// cgroups it returns those found
// so far together with cgroup.ErrTooMuch.
func List(h *cgroup.Host, o Options) ([]Container, error) { return NewLister(h, o).List() }

// Lister lists repeatedly. It keeps its results as long as the cgroup is the same one (path and id). It is not safe for
// concurrent use.
type Lister struct {
	host  *cgroup.Host
	o     Options
	known map[string]remembered
	plain map[string]unmarked
}

type remembered struct {
	id        uint64
	container Container
	named     bool // every name is known, so no look-up is necessary
}

// NewLister returns a lister; it reads nothing yet.
func NewLister(h *cgroup.Host, o Options) *Lister {
	return &Lister{host: h, o: o, known: map[string]remembered{}, plain: map[string]unmarked{}}
}

// complete reports whether a group has its own cgroup in every hierarchy. One that shares an ancestor's may get its own
// at any time, also from a remedy, so it is looked up again.
func complete(g cgroup.Group) bool {
	return (g.CPUSetPath == "" || g.CPUSetPath == g.Path) && (g.CPUAcctPath == "" || g.CPUAcctPath == g.Path)
}

// candidate is a cgroup that gets a line, before its names are looked up.
type candidate struct {
	path  string
	inode uint64 // the cgroup's id; 0: not read yet
	known bool   // a container or unit
	identity
}

// List does the same as the function List.
func (l *Lister) List() ([]Container, error) {
	candidates, tooMuch := l.candidates()
	if candidates == nil && tooMuch != nil {
		return nil, tooMuch
	}
	names := namer{host: l.host, o: l.o}
	candidates = l.owned(candidates, &names)
	known := make(map[string]remembered, len(candidates))
	containers := make([]Container, 0, len(candidates))
	for _, c := range candidates {
		id, err := c.inode, error(nil)
		if id == 0 {
			id, err = l.host.ID(cgroup.CPU, c.path)
		}
		if err != nil {
			continue
		}
		r, ok := l.known[c.path]
		ok = ok && r.id == id && r.container.ID == c.id
		if !ok || !complete(r.container.Group) {
			group, err := l.host.Group(c.path)
			if err != nil {
				continue
			}
			if !ok {
				r = remembered{id: id, container: c.describe(group)}
			}
			r.container.Group = group
		}
		if !r.named {
			r.named = names.name(&r.container)
		}
		known[c.path] = r
		containers = append(containers, r.container)
	}
	l.known = known
	return containers, tooMuch
}

// candidates walks the tree once.
func (l *Lister) candidates() ([]candidate, error) {
	top := l.host.Top(cgroup.CPU)
	scope := depth(relative(l.o.Scope, top))
	var found []candidate
	err := l.host.Walk(l.o.Scope, func(path string) error {
		c := candidate{path: path}
		c.identity, c.known = recognise(relative(path, top))
		if c.known && c.depth < scope { // the scope is inside a container
			c.identity, c.known = identity{podUID: c.podUID}, false
		}
		if path != top {
			found = append(found, c)
		}
		if c.known && c.runtime != Systemd {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil && !errors.Is(err, cgroup.ErrTooMuch) {
		return nil, err
	}
	return choose(found, top, l.works), err
}

// relative returns a path relative to the highest visible cgroup, so that a runtime's name above it does not count.
func relative(path, top string) string {
	if top == "/" {
		return path
	}
	if path = strings.TrimPrefix(path, top); path == "" {
		return "/"
	}
	return path
}

// choose picks the cgroups that get a line from all that a walk visited (parents first). These are containers, units at
// their own cgroup, and leaves of the rest. A unit with another line below it only groups, unless it has processes
// itself.
func choose(met []candidate, top string, works func(path string) bool) []candidate {
	var chosen []candidate
	for i, c := range met {
		leaf := i+1 == len(met) || !cgroup.Below(met[i+1].path, c.path)
		if c.known && depth(relative(c.path, top)) == c.depth || !c.known && leaf {
			chosen = append(chosen, c)
		}
	}
	kept := make([]candidate, 0, len(chosen))
	for i, c := range chosen {
		groups := i+1 < len(chosen) && cgroup.Below(chosen[i+1].path, c.path)
		if !groups || works(c.path) {
			kept = append(kept, c)
		}
	}
	return kept
}

func depth(path string) int { return strings.Count(path, "/") }

// works reports whether a cgroup has its own processes.
func (l *Lister) works(path string) bool {
	pids, err := l.host.Procs(cgroup.CPU, path)
	return err == nil && len(pids) > 0
}
