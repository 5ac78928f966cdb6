package schedpolicy

import "errors"

// FS is what is read and written of threads. Errors wrap fs.ErrNotExist where the thread is gone.
type FS interface {
	Read(tid int) (Policy, error)
	// Write wraps ErrRefused where this thread may not have it.
	Write(tid int, p Policy) error
	// ID is the thread's start time in clock ticks since boot.
	ID(tid int) (uint64, error)
	// Bounded tells whether the kernel keeps a part of each CPU from real-time threads.
	Bounded() (bool, error)
}

// ErrRefused is the kernel's answer to who may not give a thread this policy.
var ErrRefused = errors.New("the kernel does not let this thread have that policy (its cgroup has no real-time " +
	"runtime, or CAP_SYS_NICE is missing)")
