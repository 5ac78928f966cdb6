package schedpolicy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// FS reads and writes threads' policies. Errors wrap fs.ErrNotExist for a thread that has ended.
type FS interface {
	Read(tid int) (Policy, error)
	// Write wraps ErrRefused if this thread may not have the policy.
	Write(tid int, p Policy) error
	// ID is the thread's start time in clock ticks since boot.
	ID(tid int) (uint64, error)
	// Bounded reports whether the kernel reserves a part of each CPU for threads that are not real-time.
	Bounded() (bool, error)
}

// ErrRefused is the kernel's answer to a caller that may not give a thread this policy.
var ErrRefused = errors.New("the kernel does not let this thread have that policy (its cgroup has no real-time runtime, or CAP_SYS_NICE is missing)")

// Host is this machine's threads.
type Host struct{ proc string }

// NewHost takes the mount point of proc.
func NewHost(proc string) Host { return Host{proc} }

// The bit of sched_setscheduler's policy (SCHED_RESET_ON_FORK), and of sched_getattr's flags
// (SCHED_FLAG_RESET_ON_FORK).
const (
	bitResetOnFork  = 0x40000000
	flagResetOnFork = 0x01
)

// Read calls sched_getattr.
func (Host) Read(tid int) (Policy, error) {
	if tid <= 0 {
		return Policy{}, fmt.Errorf("thread %d: %w", tid, fs.ErrNotExist)
	}
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return Policy{}, fmt.Errorf("thread %d: cannot read its scheduling policy: %w", tid, gone(err))
	}
	p := Policy{Class: "class " + strconv.Itoa(int(attr.Policy)), ResetOnFork: attr.Flags&flagResetOnFork != 0}
	if int(attr.Policy) < len(classes) && classes[attr.Policy] != "" {
		p.Class = classes[attr.Policy]
	}
	if p.realtime() {
		p.Priority = int(attr.Priority)
	}
	return p, nil
}

// Write calls sched_setscheduler.
func (Host) Write(tid int, p Policy) error {
	class := number(p.Class)
	if tid <= 0 || class < 0 || p.Class == "deadline" || p.realtime() != (p.Priority > 0) {
		return fmt.Errorf("thread %d cannot be given the policy %q", tid, p)
	}
	if p.ResetOnFork {
		class |= bitResetOnFork
	}
	priority := int32(p.Priority) // struct sched_param
	_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), uintptr(class), uintptr(unsafe.Pointer(&priority)))
	if errno != 0 {
		return fmt.Errorf("thread %d: %s: %w", tid, p, gone(errno))
	}
	return nil
}

// gone recognises a thread that ended, and refusals.
func gone(err error) error {
	switch {
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// maxStat bounds one line of /proc/TID/stat.
const maxStat = 8 << 10

// ID reads field 22 of /proc/TID/stat.
func (h Host) ID(tid int) (uint64, error) {
	text, err := h.read(strconv.Itoa(tid), "stat")
	if err != nil {
		return 0, gone(err)
	}
	id, err := procfs.StartTime(text)
	if err != nil {
		return 0, fmt.Errorf("thread %d: %w", tid, err)
	}
	return id, nil
}

func (h Host) read(name ...string) (string, error) {
	f, err := os.Open(filepath.Join(append([]string{h.proc}, name...)...))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxStat))
	return string(text), err
}

// Bounded reads sched_rt_runtime_us; -1 means no bound.
func (h Host) Bounded() (bool, error) {
	text, err := h.read("sys", "kernel", "sched_rt_runtime_us")
	if err != nil {
		return false, fmt.Errorf("whether real-time threads are bounded: %w", err)
	}
	return !strings.HasPrefix(strings.TrimSpace(text), "-"), nil
}
