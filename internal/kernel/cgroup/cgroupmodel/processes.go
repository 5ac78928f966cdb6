package cgroupmodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"k8s.io/utils/cpuset"
)

// Spawn starts a process in the given cgroup of every hierarchy that has a cgroup of this path, else in the root. Its
// threads are pid and the further ones. It panics if the pid is taken or the cgroup cannot hold it: that is a mistake
// in the test.
func (k *Kernel) Spawn(path string, pid int, threads ...int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.start(path, pid, false, append([]int{pid}, threads...))
}

// SpawnForeign starts a process outside our PID namespace: it reads as 0 everywhere.
func (k *Kernel) SpawnForeign(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pid := -1
	for k.procs[pid] != nil {
		pid--
	}
	k.start(path, pid, true, []int{pid})
}

func (k *Kernel) start(path string, pid int, foreign bool, threads []int) {
	if k.procs[pid] != nil {
		panic(fmt.Sprintf("cgroupmodel: pid %d is taken", pid))
	}
	p := &process{threads: threads, foreign: foreign, at: map[*tree]*group{}}
	for _, t := range k.allTrees() {
		g := t.find(path)
		if g == nil {
			g = t.root
		}
		if err := k.mayHold(t, g); err != nil {
			panic(fmt.Sprintf("cgroupmodel: %s cannot hold pid %d: %v", path, pid, err))
		}
		p.at[t] = g
	}
	k.procs[pid] = p
}

// Fork starts a process in its parent's cgroups, as fork(2) does.
func (k *Kernel) Fork(parent, pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	from := k.procs[parent]
	if from == nil || k.procs[pid] != nil {
		panic(fmt.Sprintf("cgroupmodel: cannot fork %d from %d", pid, parent))
	}
	p := &process{threads: []int{pid}, at: map[*tree]*group{}}
	for t, g := range from.at {
		p.at[t] = g
	}
	k.procs[pid] = p
}

// Exit ends a process. It does nothing for one that does not exist.
func (k *Kernel) Exit(pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.procs, pid)
}

// At returns the cgroup of a process in the hierarchy of c.
func (k *Kernel) At(pid int, c cgroup.Controller) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, t := k.procs[pid], k.trees[c]
	if p == nil || t == nil {
		return "", false
	}
	return p.at[t].path, true
}

// Allowed returns a process's Cpus_allowed_list: the CPUs in force in its cpuset.
func (k *Kernel) Allowed(pid int) (cpuset.CPUSet, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, t := k.procs[pid], k.trees[cgroup.CPUSet]
	if p == nil || t == nil {
		return cpuset.CPUSet{}, false
	}
	return k.effective(t, p.at[t]), true
}

// list returns the content of cgroup.procs, or with threads that of tasks. v2 lists a process of a threaded cgroup at
// its thread root, and its threads in their own cgroups.
func (k *Kernel) list(t *tree, g *group, threads bool) string {
	var ids []int
	for pid, p := range k.procs {
		at := p.at[t]
		if !threads {
			at = domain(at)
		}
		switch {
		case at != g:
		case p.foreign:
			ids = append(ids, 0)
		case threads:
			ids = append(ids, p.threads...)
		default:
			ids = append(ids, pid)
		}
	}
	slices.Sort(ids)
	lines := make([]string, len(ids))
	for i, id := range ids {
		lines[i] = strconv.Itoa(id)
	}
	return strings.Join(lines, "\n")
}

// populated reports whether a cgroup holds processes; with deep, also its descendants.
func (k *Kernel) populated(t *tree, g *group, deep bool) bool {
	for _, p := range k.procs {
		for at := p.at[t]; at != nil; at = at.parent {
			if at == g {
				return true
			}
			if !deep {
				break
			}
		}
	}
	return false
}
