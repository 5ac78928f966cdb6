package container

import (
	"github.com/unthrottle/unthrottle/internal/container/runtimes"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// maxOwnerTries bounds how often the owner of a cgroup is looked for: a new one has no process at first.
const maxOwnerTries = 3

// unmarked is what is known of a cgroup whose path tells nothing.
type unmarked struct {
	id    uint64
	tries int
	owner runtimes.Owner // ID "" where there is none
}

// owned makes containers of the plain cgroups that a runtime's process waits for. Several cgroups of one container
// become one candidate.
func (l *Lister) owned(candidates []candidate, n *namer) []candidate {
	if l.o.Runtimes == nil {
		return candidates
	}
	asked := map[string]unmarked{}
	listed := map[string]bool{}
	kept := candidates[:0]
	for _, c := range candidates {
		if !c.known {
			var owner runtimes.Owner
			if c.inode, owner = l.owner(c.path, n, asked); owner.ID != "" && cgroup.Below(owner.Cgroup, l.o.Scope) {
				c = candidate{path: owner.Cgroup, known: true,
					identity: identity{runtime: owner.Runtime, id: owner.ID, podUID: c.podUID, qos: c.qos}}
			}
		}
		if !listed[c.path] {
			listed[c.path] = true
			kept = append(kept, c)
		}
	}
	l.plain = asked
	return kept
}

// owner looks a cgroup up, and keeps what it found in asked. The id is 0 for a cgroup that is gone.
func (l *Lister) owner(path string, n *namer, asked map[string]unmarked) (id uint64, owner runtimes.Owner) {
	id, err := l.host.ID(cgroup.CPU, path)
	if err != nil {
		return 0, runtimes.Owner{}
	}
	p := l.plain[path]
	if p.id != id {
		p = unmarked{id: id}
	}
	if p.owner.ID == "" && p.tries < maxOwnerTries {
		p.tries++
		if pid, ok := n.process(path); ok {
			p.owner, _ = l.o.Runtimes.Owner(path, pid)
		}
	}
	asked[path] = p
	return id, p.owner
}
