package container

import (
	"github.com/unthrottle/unthrottle/internal/container/names"
	"github.com/unthrottle/unthrottle/internal/container/runtimes"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Runtimes of a Container; "" is a plain cgroup.
const (
	Docker     = names.Docker
	Containerd = names.Containerd
	CRIO       = names.CRIO
	Podman     = names.Podman
	LXC        = "lxc"
	Nomad      = "nomad"
	ECS        = "ecs"
	Mesos      = "mesos"
	Kubernetes = "kubernetes" // in a pod, by a runtime that leaves no mark
	Systemd    = "systemd"    // a unit that is no container
)

// runtimePrefixes are the runtimes that a target may begin with: all of them.
var runtimePrefixes = []string{Docker, Containerd, CRIO, Podman, LXC, Nomad, ECS, Mesos, Kubernetes, Systemd}

// Container is a container, a systemd unit, or a plain cgroup.
type Container struct {
	// Group is the container's topmost cgroup; cgroups that it makes below belong to it.
	Group cgroup.Group
	// ID is the runtime's id, raw; "" for units and plain cgroups.
	ID string
	// Runtime is one of the constants above.
	Runtime string
	// Name is the readable name: "namespace/pod/container", the runtime's name, the unit, else a short id or the path. It
	// is never empty, has at most MaxName runes, and is safe on a terminal.
	Name string
	// Pod and Namespace are Kubernetes' names, "" where unknown. They hold letters, digits, "-" and "." only.
	Pod, Namespace string
	// TemplateHash is the pod's label pod-template-hash, which its Deployment gave it; "" where unknown.
	TemplateHash string
	// ContainerName is Kubernetes' name of the container, outside pods the runtime's; "" where unknown. It is as safe as
	// Name.
	ContainerName string
	// Image is the image as the user named it, Project and Service are those of compose (or stack and service of swarm).
	// "" is not known. They are as safe as Name.
	Image, Project, Service string
	// QoS is the pod's class: one of the constants QoS..., "" outside Kubernetes' own cgroups.
	QoS string
	// PodUID is the pod's uid with dashes, or the 32 hex digits of a static pod's hash.
	PodUID string
	// Unit is the systemd unit of this cgroup, raw; "" without one.
	Unit string
}

// QoS classes of Kubernetes.
const (
	Guaranteed = "Guaranteed"
	Burstable  = "Burstable"
	BestEffort = "BestEffort"
)

// Scopes of a level above a container, or of its own.
const (
	ScopeOwn   = "own"
	ScopePod   = "pod"
	ScopeSlice = "slice"
)

// ScopeOf tells what a cgroup is for the container: its own, its pod's, or one further up ("slice"). "" is a cgroup that
// it is not in.
func (c *Container) ScopeOf(path string) string {
	switch {
	case path == c.Group.Path:
		return ScopeOwn
	case path == "" || !cgroup.Below(c.Group.Path, path):
		return ""
	case podUIDOf(cgroup.Base(path)) != "" || c.Pod != "" && path == cgroup.Parent(c.Group.Path):
		return ScopePod
	}
	return ScopeSlice
}

// Options of List.
type Options struct {
	// Scope limits the search to a cgroup and its descendants; "" means all.
	Scope string
	// VarLog holds the node's pods/ and containers/ log folders, usually "/var/log"; "" means not to read them.
	VarLog string
	// Runtimes are asked for names; nil means not to ask.
	Runtimes *runtimes.Host
}

// DefaultOptions returns the usual folders and this host's runtimes.
func DefaultOptions() Options { return Options{VarLog: "/var/log", Runtimes: runtimes.ThisHost()} }
