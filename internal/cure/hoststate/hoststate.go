package hoststate

import (
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/txn"
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
	// Held are our transactions in force, Journal the file that they are from; "": not known.
	Held    []txn.InForce
	Journal string
	// Drift is where values are no longer ours (apply.Drift); only cgroups
	// that are gone, or whose path another cgroup has now, count here.
	Drift []txn.DriftItem
	// Claims are of programs that give out CPUs and write cpusets when they do, beside what Sets tell.
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
	// Pod is what the spec of the target's pod has; nil: it is in no pod, or pods cannot be resized from here.
	Pod *Pod
	// HasBurst: the kernel knows cpu.max.burst (5.14).
	HasBurst bool
	// HasIdle: the kernel knows cpu.idle (5.15).
	HasIdle bool
	// SchedExt says whether this host can narrow by sched_ext.
	SchedExt SchedExt
	// HiddenProcesses: v1 does not list the processes of other PID namespaces
	// here, so that the counts below say nothing. HiddenUnknown: whether it
	// lists them cannot be told; plans then take it that it does.
	HiddenProcesses, HiddenUnknown bool
	// Scope is the cgroup outside of which nothing may be touched; "": none.
	// Named is a cgroup that the user named, below which ancestors' quotas may
	// be lifted; "": none.
	Scope, Named string
}

// Pod is the CPU of a container in its pod's spec.
type Pod struct {
	// Name is the container's as package podresize names it.
	Name string
	CPU  podresize.CPU
	// Unread says why it could not be read; "": it was.
	Unread string
}

// SchedExt says whether a host can narrow by sched_ext.
type SchedExt struct {
	Can bool
	// Why is the reason why it cannot, such as "the kernel has no sched_ext".
	Why string
}

// ParamInterrupts is the parameter of a transaction in force that keeps interrupts off its CPUs: Interrupts are then
// part of the facts.
const ParamInterrupts = "irqs"

// Group is one cgroup of the cpu hierarchy.
type Group struct {
	// ID tells it from another cgroup that had or gets its path; 0: not known.
	ID    uint64
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

// Claim is a set of CPUs that another program gives out or uses.
type Claim struct {
	CPUs cpuset.CPUSet
	// By says who, for people: "kubelet static policy".
	By string
	// Set is the path of the cpuset that claims them, Pinned the same where a
	// pin of ours set it; "": neither. Shares: others may run on these CPUs too.
	Set, Pinned string
	Shares      bool
}

// Interrupts are a host's, as they were found.
type Interrupts struct {
	All []irq.Interrupt
	// Default are the CPUs of interrupts that are requested later.
	Default cpuset.CPUSet
	// Balanced: irqbalance runs and spreads them anew every ten seconds.
	Balanced bool
}

// Each visits the CPUs of those that are requested later, and of every interrupt.
func (i Interrupts) Each(visit func(file string, now cpuset.CPUSet)) {
	visit(irq.Default, i.Default)
	for _, interrupt := range i.All {
		visit(irq.File(interrupt.Number), interrupt.CPUs)
	}
}

// Observed is what a window of observation showed. Nil: not measured.
type Observed struct {
	// StoppedLow and StoppedHigh bound the stopped time per second, 0 to 1.
	StoppedLow, StoppedHigh *float64
	UsedCPUs                *float64
	// Window is how long it was looked at; 0: that is not known.
	Window time.Duration
}
