package apply

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/internal/widthcap"
)

// Env is everything outside that applying touches.
type Env struct {
	// FS is the cgroup trees.
	FS cgroup.FS
	// StateDir holds journal and lock.
	StateDir string
	// IRQ is the interrupts of this machine; nil: they cannot be read or set.
	IRQ irq.FS
	// Sched is the scheduling policy of threads; nil: it cannot be read or set.
	Sched schedpolicy.FS
	// Width is the caps of cgroups' widths in the sched_ext scheduler; nil: they cannot be read or set.
	Width widthcap.FS
	// Pods are the specs of this node's pods; nil: they cannot be resized from here.
	Pods podresize.FS
	// Systemd is the manager on D-Bus, nil where there is none.
	Systemd Systemd
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// BootID is /proc/sys/kernel/random/boot_id: which life of the machine this is.
	BootID string
	// Scope is the path that every change must be at or below; "" is no bound.
	Scope string
	// By says who acts: "unthrottle apply, user root", "agent".
	By string
	// Log takes what is worth a debug line; nil is silence.
	Log *slog.Logger
	// Proc reads processes, for the affinity of threads, to tell kernel threads, and whether a trial is abandoned; nil: not
	// looked at, and said so.
	Proc Proc
	// LockWait is how long to wait for another writer; 0 is journal.DefaultWait.
	LockWait time.Duration
	// KeepHistory is how many ended transactions to keep; 0 is journal.DefaultKeep.
	KeepHistory int

	// Undoing is called before a rollback that begins because the caller's context ended; nil: not called.
	Undoing func(what string)

	wrap func(journal.Handle) journal.Handle
	// chance is where ids are drawn from; nil is the kernel's random numbers.
	chance io.Reader
}

// Systemd is what is asked of a systemd manager. Values are in the notation of package systemd.
type Systemd interface {
	Get(ctx context.Context, unit, property string) (string, error)
	Set(ctx context.Context, unit string, properties map[string]string, runtime bool) error
	// Forget removes what Set left for properties that have their former values again, by unit and property.
	Forget(ctx context.Context, values map[string]map[string]string) error
}

// Proc reads processes.
type Proc interface {
	// Allowed is Cpus_allowed_list of a thread.
	Allowed(tid int) (cpuset.CPUSet, error)
	// KernelThread tells whether a process is one of the kernel's own.
	KernelThread(pid int) (bool, error)
	// AllProcesses tells whether our PID namespace shows every process of the machine. In another one cgroup v1 leaves
	// out of cgroup.procs whom it does not show, without a trace.
	AllProcesses() (bool, error)
	// Threads lists the threads of a process.
	Threads(pid int) ([]int, error)
	// Self is this process.
	Self() (journal.Process, error)
	// Runs reports whether a process still runs. An error: that cannot be told, for example of another PID namespace.
	Runs(journal.Process) (bool, error)
}

func (e Env) now() time.Time {
	if e.Now == nil {
		return time.Now().UTC()
	}
	return e.Now().UTC()
}

// TellUndoing calls Undoing for a transaction that is to be rolled back, if ctx has ended.
func (e Env) TellUndoing(ctx context.Context, remedy, target string) {
	if ctx.Err() != nil && e.Undoing != nil {
		e.Undoing(fmt.Sprintf("%s of %.200q", remedy, target))
	}
}

func (e Env) chanceOf() io.Reader {
	if e.chance == nil {
		return rand.Reader
	}
	return e.chance
}

func (e Env) log() *slog.Logger {
	if e.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return e.Log
}

func (e Env) open(ctx context.Context) (*journal.Journal, error) {
	return journal.Open(ctx, e.StateDir, journal.Options{Wait: e.LockWait, Now: e.now, Keep: e.KeepHistory, Wrap: e.wrap})
}
