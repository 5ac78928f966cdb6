package scx

// Scheduler is the scheduler while this process holds it. Several goroutines may call its methods.
type Scheduler struct {
	*Caps
}

// Caps are the caps of a scheduler that runs, held by this process or by another. Several goroutines and processes may
// call its methods.
type Caps struct{}

// Supported returns nil if this kernel can run the scheduler, else an *Unavailable.
func Supported() error { return unbuilt }

// Load loads and attaches the scheduler. If the kernel refuses, the error is an *Unavailable.
func Load(Options) (*Scheduler, error) { return nil, unbuilt }

// Open opens the maps that a loader has pinned in a folder. If the kernel does not run the scheduler, the error is
// ErrNotEnabled.
func Open(string) (*Caps, error) { return nil, unbuilt }

// Done is closed when the kernel has thrown the scheduler out, or Close has ended it.
func (*Scheduler) Done() <-chan struct{} { return nil }

// Err tells, after Done, why the kernel threw the scheduler out; nil after Close.
func (*Scheduler) Err() error { return unbuilt }

// Close puts every thread under the kernel's own scheduler, and removes the pinned maps.
func (*Scheduler) Close() error { return unbuilt }

// Set gives a cgroup a cap, or changes its cap. It is in force within some milliseconds.
func (*Caps) Set(cgroupID uint64, c Cap) error { return c.Check() }

// Remove takes a cgroup's cap away. The error is ErrNoCap if it has none.
func (*Caps) Remove(cgroupID uint64) error { return ErrNoCap }

// All returns the caps that were set, by cgroup id.
func (*Caps) All() (map[uint64]Cap, error) { return nil, unbuilt }

// Stats returns what was counted for a cgroup. The error is ErrNoCap if it has no cap.
func (*Caps) Stats(cgroupID uint64) (Stats, error) { return Stats{}, ErrNoCap }

// Close closes this process's handles. The caps stay.
func (*Caps) Close() error { return nil }

var unbuilt = &Unavailable{Why: "this build has no scheduler", Way: "use a cpuset: --via cpuset"}
