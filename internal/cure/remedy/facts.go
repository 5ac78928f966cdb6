package remedy

import (
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/topology"
)

// removed are the CPUs that our transactions in force took out of each set.
func (f facts) removed() map[string]cpuset.CPUSet {
	type key struct{ id, path string }
	out, lost := map[string]cpuset.CPUSet{}, map[key]bool{}
	for _, d := range f.Drift {
		if d.Gone {
			lost[key{d.ID, d.Path}] = true
		}
	}
	for _, h := range f.Held {
		for _, c := range h.Changes {
			if c.Op != change.OpRemoveCPUs || lost[key{h.ID, c.Path}] {
				continue
			}
			if set, err := topology.ParseList(c.To); err == nil {
				out[c.Path] = out[c.Path].Union(set)
			}
		}
	}
	return out
}

// lost tells whether the cgroup that a transaction changed is gone, or another
// one has its path: a container that was started again.
func (f facts) lost(id, path string) bool {
	return slices.ContainsFunc(f.Drift, func(d txn.DriftItem) bool { return d.Gone && d.ID == id && d.Path == path })
}

// confined are the cpusets that existed before and that a pin of ours set.
func (f facts) confined() map[string]bool {
	confined := map[string]bool{}
	for _, h := range f.Held {
		for _, c := range h.Changes {
			if c.Op == change.OpSet && (c.File == cgroup.FileCPUs || c.File == unitprop.AllowedCPUs) {
				confined[c.Path] = true
			}
		}
		for _, c := range h.Changes {
			if c.Kind == change.KindCgroup {
				delete(confined, c.Path)
			}
		}
	}
	return confined
}

// madeByUs tells whether a transaction in force created the cpuset, or enabled
// the controller below the cgroup.
func (f facts) madeByUs(kind change.Kind, path string) bool {
	return slices.ContainsFunc(f.Held, func(h Held) bool {
		return slices.ContainsFunc(h.Changes, func(c change.Change) bool { return c.Kind == kind && c.Path == path })
	})
}

// holdsLimit tells whether a transaction in force holds a part of a limit.
func (f facts) holdsLimit(path string) bool {
	files := cgroup.LimitFiles(f.CPUVersion)
	return slices.ContainsFunc(f.Held, func(h Held) bool {
		return slices.ContainsFunc(h.Changes, func(c change.Change) bool {
			return c.Path == path && (slices.Contains(files, c.File) || c.File == unitprop.CPUQuotaPerSecUSec)
		})
	})
}

// parent is the parent in a tree, "" for the root.
func parent(path string) string {
	if path == "/" {
		return ""
	}
	return cgroup.Parent(path)
}

// ancestors are the paths above path, nearest first, "/" last.
func ancestors(path string) []string {
	var all []string
	for path != "/" && path != "" {
		path = cgroup.Parent(path)
		all = append(all, path)
	}
	return all
}

// children are the paths directly below path, in byte order.
func children[V any](tree map[string]V, path string) []string {
	var all []string
	for p := range tree {
		if p != path && parent(p) == path {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

// sorted are all paths, parents before children, in byte order.
func sorted[V any](tree map[string]V) []string {
	all := make([]string, 0, len(tree))
	for p := range tree {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b string) int {
		if d := depth(a) - depth(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return all
}

func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// below tells whether path is strictly below top.
func below(path, top string) bool { return path != top && cgroup.Below(path, top) }

// inScope tells whether a path may be touched.
func (f facts) inScope(path string) bool { return cgroup.Below(path, f.Scope) }

// container finds the container whose cgroup this is.
func (f facts) container(path string) (hoststate.Container, bool) {
	i := slices.IndexFunc(f.Containers, func(c hoststate.Container) bool { return c.Group.Path == path })
	if i < 0 {
		return hoststate.Container{}, false
	}
	return f.Containers[i], true
}
