package schedhost

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
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
)

// Host is this machine's threads.
type Host struct{ proc string }

// New takes where proc is mounted.
func New(proc string) Host { return Host{proc} }

// The bit of sched_setscheduler's policy (SCHED_RESET_ON_FORK), and of sched_getattr's flags
// (SCHED_FLAG_RESET_ON_FORK).
const (
	bitResetOnFork  = 0x40000000
	flagResetOnFork = 0x01
)

// Read asks sched_getattr.
func (Host) Read(tid int) (schedpolicy.Policy, error) {
	if tid <= 0 {
		return schedpolicy.Policy{}, fmt.Errorf("thread %d: %w", tid, fs.ErrNotExist)
	}
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return schedpolicy.Policy{}, fmt.Errorf("thread %d: its scheduling policy cannot be read: %w", tid, gone(err))
	}
	p := schedpolicy.Policy{Class: "class " + strconv.Itoa(int(attr.Policy)), ResetOnFork: attr.Flags&flagResetOnFork != 0}
	if class, known := schedpolicy.Class(int(attr.Policy)); known {
		p.Class = class
	}
	if p.HasPriority() {
		p.Priority = int(attr.Priority)
	}
	return p, nil
}

// Write asks sched_setscheduler.
func (Host) Write(tid int, p schedpolicy.Policy) error {
	class, known := schedpolicy.ClassNumber(p.Class)
	if tid <= 0 || !known || p.Class == "deadline" || p.HasPriority() != (p.Priority > 0) {
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
		return fmt.Errorf("%w: %w", schedpolicy.ErrRefused, err)
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
