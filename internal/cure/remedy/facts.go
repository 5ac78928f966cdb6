package remedy

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/cure/txn/change"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/topology"
)

// Facts is all that a plan rests on: one look at a host, as plain values.
type Facts struct {
	// At is when the host was looked at; zero: not known.
	At      time.Time
	Machine topology.Machine
	// CPUVersion and CPUSetVersion are those of the two hierarchies; 0: not
	// mounted. OneTree: both controllers share a hierarchy, hence paths.
	CPUVersion, CPUSetVersion cgroup.Version
	OneTree                   bool
	// Groups are the cgroups of the cpu hierarchy, Sets those of the cpuset
	// hierarchy, both by path. On one tree both hold every cgroup.
	Groups map[string]Group
	Sets   map[string]Set
	// Containers are the leaf cgroups that people have a name for.
	Containers []Container
	// Held are the transactions of ours that are in force.
	Held []txn.InForce
	// Drift is where values are no longer ours (apply.Drift); of it the cgroups
	// that are gone, or others by now under the same path, count here.
	Drift []txn.DriftItem
	// Claims are CPUs that others gave out or took, beside what Sets tell.
	Claims []Claim
	// Systemd: it runs here. Group.Unit tells what it owns, where it could be
	// asked.
	Systemd bool
	// Load is the busy share of each CPU over a short window, 0 to 1; nil: not
	// measured.
	Load map[int]float64
	// Interrupts are the host's; nil: not read, since no transaction in force
	// keeps any off its CPUs, or not possible.
	Interrupts *Interrupts
	// HasBurst: the kernel knows cpu.max.burst (5.14).
	HasBurst bool
	// HasIdle: the kernel knows cpu.idle (5.15).
	HasIdle bool
	// HiddenProcesses: v1 does not list the processes of other PID namespaces
	// here, so that the counts below say nothing. HiddenUnknown: whether it
	// lists them cannot be told; plans then take it that it does.
	HiddenProcesses, HiddenUnknown bool
	// Scope is the cgroup outside of which nothing may be touched; "": none.
	// Named is a cgroup that the user named, below which ancestors' quotas may
	// be lifted; "": none.
	Scope, Named string
}

// Group is one cgroup of the cpu hierarchy.
type Group struct {
	Limit cgroup.Limit
	// Shares is the weight in the unit of cpu.shares; 0: it has none.
	Shares uint64
	// Idle: cpu.idle is set; Shares are then next to nothing and cannot be set.
	Idle bool
	// UsedCPUs is CPU time used / time over a short window, its descendants
	// with it; nil: not measured.
	UsedCPUs *float64
	// Procs counts the processes in the cgroup itself. Foreign: some of them
	// are outside our PID namespace (0 in cgroup.procs).
	Procs   int
	Foreign bool
	// Type is cgroup.type on v2; "" on v1.
	Type string
	// Sandbox: all that is in it is the pause process of a pod.
	Sandbox bool
	// Unit is the systemd unit whose own cgroup this is, where systemd runs;
	// "" if it is none.
	Unit string
}

// Set is one cgroup of the cpuset hierarchy.
type Set struct {
	cgroup.CPUSetState
	// Cpus is cpuset.cpus as read ("" also where v2 has no such file), and
	// EffectiveMems the memory nodes in force.
	Cpus          string
	EffectiveMems cpuset.CPUSet
	// Procs counts the processes in the cgroup itself. Of are the same by their
	// cgroup in the cpu hierarchy, "" where that was not found, on separate
	// hierarchies.
	Procs int
	Of    map[string]int
	// Type is cgroup.type, and Subtree the controllers handed to the children
	// (v2).
	Type    string
	Subtree []cgroup.Controller
}

// Container is a container and what is known only of containers.
type Container struct {
	container.Container
	// OwnSet: its cpuset cgroup holds no other container's tasks.
	OwnSet bool
}

// The parameters that a plan stores with its transaction and reads again.
const (
	paramCPUs  = "cpus"   // the exclusive CPUs, a kernel list
	paramSet   = "cpuset" // the path of the cpuset that holds them
	paramFor   = "upkeep" // the id of the transaction that this one belongs to
	paramPool  = "pool"   // of a hybrid: the shared CPUs that it may use
	paramLimit = "limit"  // of a hybrid: its limit in CPUs
	paramMems  = "mems"   // the memory nodes that a target's CPUs want
	paramLends = "lends"  // "yes": secondary containers may use its CPUs
	paramLent  = "lent"   // of a secondary: the CPUs lent to it, a kernel list
	paramStays = "stays"  // "yes": the target is never moved to other CPUs
	paramIRQs  = "irqs"   // of pin, "yes": interrupts are kept off its CPUs
	paramCores = "cores"  // of pin, "full": whole cores only
	paramIdle  = "idle"   // of pin: the threads beside its CPUs that idle for it, a kernel list
	paramAsked = "asked"  // of system, "yes": the CPUs were asked for and follow no use
	// The CPUs of a pin that lends, which secondaries were lent and must not have for now.
	paramWithheld = "withheld"
)

// removed are the CPUs that our transactions in force took out of each set.
func (f Facts) removed() map[string]cpuset.CPUSet {
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

// Claim is a set of CPUs that somebody else gives out.
type Claim struct {
	CPUs cpuset.CPUSet
	// By says who, for people: "kubelet static policy".
	By string
	// set is the path of the cpuset that claims them, pinned the same where it
	// is a pin of ours; "": neither. shares: others may run on these CPUs too.
	set, pinned string
	shares      bool
}

// lost tells whether the cgroup that a transaction changed is gone, or another
// one has its path: a container that was started again.
func (f Facts) lost(id, path string) bool {
	return slices.ContainsFunc(f.Drift, func(d txn.DriftItem) bool { return d.Gone && d.ID == id && d.Path == path })
}

// confined are the cpusets that existed before and that a pin of ours set.
func (f Facts) confined() map[string]bool {
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
func (f Facts) madeByUs(kind change.Kind, path string) bool {
	return slices.ContainsFunc(f.Held, func(h txn.InForce) bool {
		return slices.ContainsFunc(h.Changes, func(c change.Change) bool { return c.Kind == kind && c.Path == path })
	})
}

// holdsLimit tells whether a transaction in force holds a part of a limit.
func (f Facts) holdsLimit(path string) bool {
	files := cgroup.LimitFiles(f.CPUVersion)
	return slices.ContainsFunc(f.Held, func(h txn.InForce) bool {
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
func (f Facts) inScope(path string) bool { return cgroup.Below(path, f.Scope) }

// container finds the container whose cgroup this is.
func (f Facts) container(path string) (Container, bool) {
	i := slices.IndexFunc(f.Containers, func(c Container) bool { return c.Group.Path == path })
	if i < 0 {
		return Container{}, false
	}
	return f.Containers[i], true
}
