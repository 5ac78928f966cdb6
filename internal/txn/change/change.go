package change

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Kind is what sort of thing is changed.
type Kind string

// The kinds.
const (
	// KindFile is a control file of a cgroup.
	KindFile Kind = "file"
	// KindSystemd is a runtime property of a systemd unit.
	KindSystemd Kind = "systemd_property"
	// KindCgroup is a cgroup that is created (From "") or removed (From Present, To "").
	KindCgroup Kind = "cgroup"
	// KindTask moves processes from the cgroup From to the cgroup To.
	KindTask Kind = "task"
	// KindSubtree is one controller in cgroup.subtree_control (v2): To is "+cpuset" or "-cpuset".
	KindSubtree Kind = "subtree_control"
	// KindIRQ is the CPUs of an interrupt, or of those requested later.
	KindIRQ Kind = "irq"
	// KindSched is the scheduling policy of a thread, or of the rest of a cgroup's.
	KindSched Kind = "scheduling"
	// KindWidth is the cap of a cgroup's width in the sched_ext scheduler.
	KindWidth Kind = "width"
	// KindPodCPU is the CPU limit of a container in its pod's spec.
	KindPodCPU Kind = "pod_cpu"
)

// Known tells whether this version knows what to do with the kind.
func (k Kind) Known() bool {
	switch k {
	case KindFile, KindSystemd, KindCgroup, KindTask, KindSubtree, KindIRQ, KindSched, KindWidth, KindPodCPU:
		return true
	}
	return false
}

// Op is how a change turns the value it finds into another.
type Op string

// The operations.
const (
	// OpSet makes the value To. The zero Op means this too.
	OpSet Op = "set"
	// OpRemoveCPUs takes the CPU list To out of the set.
	OpRemoveCPUs Op = "remove_cpus"
	// OpAddCPUs puts the CPU list To into the set. A set that is empty on v2 has all of its parent's and stays so.
	OpAddCPUs Op = "add_cpus"
)

// Present is the value of a cgroup that exists; one that does not has "".
const Present = "present"

// Change is one setting to be changed.
//
// By kind:
//   - file: Controller, Path, File, Op, From, To.
//   - systemd_property: Unit, File (the property's name), Path (the unit's cgroup), Op, From, To, in the notation of
//     package systemd ("0-3", microseconds as decimal, "infinity").
//   - cgroup: Controller, Path.
//   - task: Controller, From and To (cgroup paths), and whose processes: those that are in MembersController's cgroup
//     MembersPath or below it, and in From at the same time. MembersPath "" means all of From. Path is the cgroup that
//     holds them while the change is in force: To.
//   - subtree_control: Controller (of the hierarchy that is meant), Path, To "+cpuset" and the like.
//   - scheduling: Path (the cgroup), File and From, To as package sched names threads and policies. sched.Rest as File
//     means all ordinary threads at and below the cgroup; package apply makes single ones of it.
//   - width: Path, File (widthcap.File), Op set, From and To as package widthcap spells caps; "" is no cap.
//   - pod_cpu: Path (the pod's cgroup), Unit (the container as package podresize names it), File (podresize.Setting),
//     Op set, From and To as podresize.Milli spells them.
//   - irq: File (as package irq names it), Op, From, To, CPU lists. Path is "/": interrupts belong to the whole host, so
//     that a scope below it has none.
type Change struct {
	Kind       Kind
	Op         Op
	Controller cgroup.Controller
	Path       string
	File       string
	Unit       string
	// From is the value as read when planned; "" where there was none.
	From string
	// To is the value wanted, or what Op works with.
	To                string
	MembersController cgroup.Controller
	MembersPath       string
	// Why is for people: "quota off: these CPUs bound it".
	Why string
}

// Key names a setting: two changes with equal keys change the same thing.
type Key struct {
	Kind       Kind
	Controller cgroup.Controller
	Path       string
	File       string
	Unit       string
}

// Key is the setting that c changes.
func (c Change) Key() Key {
	k := Key{Kind: c.Kind, Controller: c.Controller, Path: c.Path, File: c.File, Unit: c.Unit}
	switch c.Kind {
	case KindPodCPU:
		k.Controller = ""
	case KindSystemd:
		// A unit has one cgroup; its properties belong to no hierarchy.
		k.Controller = ""
	case KindTask:
		k.File = ""
		if k.Path == "" {
			k.Path = c.To
		}
	case KindCgroup:
		k.File = ""
	case KindIRQ:
		k.Controller, k.Path = "", "/"
	case KindSched, KindWidth:
		k.Controller = cgroup.CPU
	case KindSubtree:
		k.File = cgroup.FileSubtreeControl
		if len(c.To) > 1 {
			k.File += ":" + c.To[1:]
		}
	}
	return k
}

// String names a setting in words: "cgroup /a/b: cpuset.cpus".
func (k Key) String() string {
	switch k.Kind {
	case KindSystemd:
		return fmt.Sprintf("unit %q: %s", k.Unit, k.File)
	case KindPodCPU:
		return fmt.Sprintf("pod %q: %s", k.Unit, k.File)
	case KindCgroup:
		return fmt.Sprintf("cgroup %q (%s)", k.Path, k.Controller)
	case KindTask:
		return fmt.Sprintf("processes in cgroup %q (%s)", k.Path, k.Controller)
	case KindIRQ:
		return "/proc/irq/" + k.File
	case KindSched:
		return fmt.Sprintf("cgroup %q: scheduling policy of %s", k.Path, k.File)
	case KindWidth:
		return fmt.Sprintf("cgroup %q: cap of its width", k.Path)
	}
	return fmt.Sprintf("cgroup %q: %s", k.Path, k.File)
}

// Setting is one file of one cgroup.
type Setting struct {
	Controller cgroup.Controller
	Path, File string
}

// State is what Order needs to know of the present: the interface versions, and the values of every limit file of the
// cgroups whose limit changes (the other files of a limit decide the order in which one may be written), and which of these have
// a quota below them.
type State struct {
	Versions map[cgroup.Controller]cgroup.Version
	Values   map[Setting]string
	// LimitedBelow are the cgroups below which one has a quota.
	LimitedBelow map[string]bool
}
