package cgroup

import "fmt"

// Controller is a kernel resource controller that this project reads or sets.
type Controller string

// The controllers, as the kernel names them (/proc/cgroups).
const (
	CPU     Controller = "cpu"     // quota, burst, weight, throttling counters
	CPUSet  Controller = "cpuset"  // which CPUs and memory nodes
	CPUAcct Controller = "cpuacct" // CPU time used; on v2 part of cpu
	Memory  Controller = "memory"  // only read, by ReadMemory
	Freezer Controller = "freezer" // v1 only, and only read, by Host.Frozen; on v2 each cgroup can be frozen
)

// Controllers lists those about CPUs, in a fixed order: all but Memory and Freezer.
func Controllers() []Controller { return []Controller{CPU, CPUSet, CPUAcct} }

// allControllers are these and those that are only read.
func allControllers() []Controller { return append(Controllers(), Memory, Freezer) }

// Version is the cgroup interface version of one hierarchy.
type Version int

// The two interface versions.
const (
	V1 Version = 1
	V2 Version = 2
)

// String returns "v1" or "v2".
func (v Version) String() string { return fmt.Sprintf("v%d", int(v)) }

// Mount is where one hierarchy is mounted.
type Mount struct {
	Version Version
	// Dir is the mount point, an absolute directory.
	Dir string
	// Root is the kernel path of the cgroup that shows at Dir. It is "/" on a host, "/docker/<id>" for a bind mount
	// into a container, and "/.." for a mount above our own cgroup namespace.
	Root string
	// ReadOnly reports that this mount takes no writes.
	ReadOnly bool
}

// FileValue is one value for one file of a cgroup.
type FileValue struct{ File, Value string }

// Group is one cgroup with its counterparts in the other hierarchies. On v2, and where v1 controllers are mounted
// together, the three are equal.
type Group struct {
	// Path is the path in the cpu hierarchy. It identifies a group everywhere in this project.
	Path string
	// CPUSetPath and CPUAcctPath are the counterparts; "" means that the hierarchy does not exist.
	CPUSetPath, CPUAcctPath string
}

// Value is the value of one file of one cgroup.
type Value struct {
	Controller        Controller
	Path, File, Value string
}

// Besides is an FS whose Write may, before it returns, change other files of the cgroup for a moment too: one that asks a
// container runtime, which writes its own copy of all of them.
type Besides interface {
	// Beside are these files with their values now, which they have again once Write has returned.
	Beside(c Controller, path, file, value string) []Beside
}

// Beside is a file that a write may change for a moment.
type Beside struct {
	Value
	// Becomes is the value that it has meanwhile; "": it is not known.
	Becomes string
}

// FS makes every read and write of a cgroup setting. *Host is the real one; cgroupmodel.Kernel keeps the kernel's rules
// in memory. Paths are the kernel's ("/a/b"), raw bytes in a Go string, never interpreted. Failures are *Error.
type FS interface {
	// Version returns the interface version of the hierarchy that has c; false means that c is not mounted.
	Version(c Controller) (Version, bool)
	// Read returns a file's content without the trailing newline. It accepts at most maxFileBytes.
	Read(c Controller, path, file string) (string, error)
	// Write does one write(2). For cpuset lists it writes an empty value as "\n", which clears them. Elsewhere it
	// refuses an empty value, because the kernel ignores a write of zero bytes.
	Write(c Controller, path, file, value string) error
	// Make creates the last part of path (mkdir); the parent must exist.
	Make(c Controller, path string) error
	// Remove removes an empty cgroup (rmdir).
	Remove(c Controller, path string) error
	// Children returns the full paths of the direct children, sorted by bytes.
	Children(c Controller, path string) ([]string, error)
	// Procs reads cgroup.procs. A 0 is a process outside our PID namespace and stays in the answer.
	Procs(c Controller, path string) ([]int, error)
	// Threads reads tasks (v1) or cgroup.threads (v2).
	Threads(c Controller, path string) ([]int, error)
	// Attach moves a whole process by writing cgroup.procs. It refuses a pid below 1, because 0 would move ourselves.
	Attach(c Controller, path string, pid int) error
	// ID returns the inode of the cgroup's directory, which is the kernel's id of it. Equal ids mean the very same
	// cgroup, not a later one under the same path.
	ID(c Controller, path string) (uint64, error)
}

// Bounds on files and trees that other users fill.
const (
	// maxFileBytes bounds one control file. The longest regular one is a cpuset list: below 48 KiB at 8,192 CPUs.
	maxFileBytes = 1 << 20
	// MaxPids bounds cgroup.procs and tasks; the kernel's PID_MAX_LIMIT is 4 Mi.
	MaxPids = 1 << 22
	// maxChildren bounds the children of one cgroup.
	maxChildren = 1 << 17
	// maxGroups and MaxDepth bound a walk.
	maxGroups = 1 << 18
	MaxDepth  = 128
)
