package container

import "github.com/unthrottle/unthrottle/internal/kernel/cgroup"

// Runtimes of a Container; "" is a plain cgroup.
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

// Container is a container, a systemd unit, or a plain cgroup.
type Container struct {
	// Group is the container's topmost cgroup; cgroups that it makes below belong to it.
	Group cgroup.Group
	// ID is the runtime's id, raw; "" for units and plain cgroups.
	ID string
	// Runtime is one of the constants above.
	Runtime string
	// Name is the readable name: "pod/container", docker's name, the unit, else a short id or the path. It is never
	// empty, has at most MaxName runes, and is safe on a terminal.
	Name string
	// Pod, Namespace and ContainerName are Kubernetes' names, "" where unknown. They hold letters, digits, "-" and "."
	// only.
	Pod, Namespace, ContainerName string
	// PodUID is the pod's uid with dashes, or the 32 hex digits of a static pod's hash.
	PodUID string
	// Unit is the systemd unit of this cgroup, raw; "" without one.
	Unit string
}

// Options of List.
type Options struct {
	// Scope limits the search to a cgroup and its descendants; "" means all.
	Scope string
	// VarLog holds the node's pods/ and containers/ log folders, usually "/var/log"; "" means not to read them.
	VarLog string
	// DockerDir is docker's data folder, usually "/var/lib/docker"; "" means not to read it.
	DockerDir string
}

// DefaultOptions returns the usual folders.
func DefaultOptions() Options { return Options{VarLog: "/var/log", DockerDir: "/var/lib/docker"} }
