package container

import "github.com/unthrottle/unthrottle/internal/kernel/cgroup"

// Runtimes that a Container can be of; "" is a plain cgroup.
const (
	Docker     = "docker"
	Containerd = "containerd"
	CRIO       = "cri-o"
	Podman     = "podman"
	LXC        = "lxc"
	Nomad      = "nomad"
	ECS        = "ecs"
	Mesos      = "mesos"
	Kubernetes = "kubernetes" // in a pod, by a runtime that leaves no mark
	Systemd    = "systemd"    // a unit that is no container
)

// Container is one line of what runs here: a container, a systemd unit, or a cgroup of neither.
type Container struct {
	// Group is its topmost cgroup; what it makes below belongs to it.
	Group cgroup.Group
	// ID is the runtime's id, raw; "" for units and plain cgroups.
	ID string
	// Runtime is one of the constants above.
	Runtime string
	// Name is what people call it: "pod/container", docker's name, the unit, else a short id or the path. Never
	// empty, at most MaxName runes, safe on a terminal.
	Name string
	// Pod, Namespace and ContainerName are Kubernetes' names, "" where unknown. They hold letters, digits, "-" and
	// "." only.
	Pod, Namespace, ContainerName string
	// PodUID is the pod's uid with dashes, or the 32 hex digits of a static pod's hash.
	PodUID string
	// Unit is the systemd unit whose cgroup this is, raw, "" if none.
	Unit string
}

// Options of List.
type Options struct {
	// Scope limits the search to a cgroup and what is below it; "" is all.
	Scope string
	// VarLog holds the node's pods/ and containers/ log folders, usually "/var/log"; "" is not looked at.
	VarLog string
	// DockerDir is docker's data folder, usually "/var/lib/docker"; "" is not looked at.
	DockerDir string
}

// DefaultOptions are the usual places.
func DefaultOptions() Options { return Options{VarLog: "/var/log", DockerDir: "/var/lib/docker"} }
