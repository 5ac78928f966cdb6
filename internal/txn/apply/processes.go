package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// Bounds on moving processes: forks race with us, so we look again until none is left, but not for ever.
const (
	moveRounds    = 64
	eagerRounds   = 8
	moveTime      = 5 * time.Second
	removeRetries = 50
	shortPause    = 10 * time.Millisecond
)

// errNotAllProcesses: cgroup.procs does not list every process here.
var errNotAllProcesses = errors.New("this PID namespace does not show all processes; run in the host's (hostPID: true)")

// processes are those of a cgroup that move to another one.
type processes struct{ inCgroup }

func (processes) normalise(c change.Change) (change.Change, error) {
	c.Path = c.To
	if c.From == "" || c.To == "" {
		return c, errors.New("moving processes needs the cgroup they leave and the one they enter")
	}
	return c, nil
}

// touched leaves out the cgroup that the processes leave. It names the target that they belong to.
func (processes) touched(c change.Change) []string {
	members := c.MembersPath
	if members == "" {
		members = c.From
	}
	return []string{c.Path, members}
}

// possible refuses processes that cannot be moved.
func (w processes) possible(_ context.Context, c change.Change) error {
	pids, err := w.movable(c)
	if err != nil {
		return err
	}
	return w.notSplit(c, pids)
}

func (processes) read(_ context.Context, k change.Key) (string, error) { return k.Path, nil }

func (w processes) identity(s journal.Setting, _ uint64) (string, error) {
	why, err := w.sameCgroup(s, s.ID)
	if why == whyGone {
		why = ""
	}
	return why, err
}

// write moves processes from c.From to c.To until a listing finds none left.
func (w processes) write(ctx context.Context, c change.Change) error {
	ctx, cancel := context.WithTimeout(ctx, moveTime)
	defer cancel()
	for round := range moveRounds {
		if round > eagerRounds {
			// Processes that are just ending can be moved no more, and are listed for a moment still.
			pause(ctx)
		}
		pids, err := w.movable(c)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := w.moveOne(c, pid); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("cgroup %q: moving its processes to %q did not end: %w", c.From, c.To, err)
		}
	}
	return fmt.Errorf("cgroup %q: processes keep coming faster than they can be moved to %q", c.From, c.To)
}

// moveOne moves one process; one that has ended is none to move.
func (w processes) moveOne(c change.Change, pid int) error {
	err := w.FS.Attach(c.Controller, c.To, pid)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// movable lists the processes that c is about: in From, and members where that is asked. A process that is not in our
// PID namespace, and one of the kernel's, is an error: what needs PIDs then refuses.
func (w processes) movable(c change.Change) ([]int, error) {
	if err := w.seesAll(c); err != nil {
		return nil, err
	}
	from, err := w.FS.Procs(c.Controller, c.From)
	if err != nil {
		return nil, err
	}
	if c.MembersPath != "" {
		members := map[int]bool{}
		if err := w.members(c.MembersController, c.MembersPath, 0, members); err != nil {
			return nil, err
		}
		if members[0] {
			return nil, outsideNamespace(c.MembersPath)
		}
		kept := from[:0]
		for _, pid := range from {
			if members[pid] {
				kept = append(kept, pid)
			}
		}
		from = kept
	}
	for _, pid := range from {
		if pid == 0 {
			return nil, outsideNamespace(c.From)
		}
	}
	return w.withoutKernelThreads(c, from)
}

// seesAll refuses to move processes where not all are shown: those left out would stay, and nothing would tell.
func (w processes) seesAll(c change.Change) error {
	if w.Proc == nil {
		return nil
	}
	all, err := w.Proc.AllProcesses()
	if err == nil && !all {
		err = errNotAllProcesses
	}
	if err != nil {
		return fmt.Errorf("cgroup %q: its processes cannot be moved to %q: %w", c.From, c.To, err)
	}
	return nil
}

func outsideNamespace(path string) error {
	return fmt.Errorf("cgroup %q: it holds processes outside our PID namespace, which cannot be moved from here; run "+
		"unthrottle in the host's PID namespace", path)
}

// withoutKernelThreads refuses kernel threads: moving one would confine work of the whole machine.
func (w processes) withoutKernelThreads(c change.Change, pids []int) ([]int, error) {
	if w.Proc == nil {
		return pids, nil
	}
	for _, pid := range pids {
		kernel, err := w.Proc.KernelThread(pid)
		if err != nil {
			// Ended meanwhile: the attach finds out.
			continue
		}
		if kernel {
			return nil, fmt.Errorf("cgroup %q: process %d is a kernel thread and is never moved", c.From, pid)
		}
	}
	return pids, nil
}

// notSplit refuses processes whose threads are in several cgroups (v1): moving them by cgroup.procs would bring the
// threads together, and nothing could part them again.
func (w processes) notSplit(c change.Change, pids []int) error {
	if w.Proc == nil || w.version(c.Controller) != cgroup.V1 {
		return nil
	}
	tids, err := w.FS.Threads(c.Controller, c.From)
	if err != nil {
		return err
	}
	here := make(map[int]bool, len(tids))
	for _, tid := range tids {
		here[tid] = true
	}
	for _, pid := range pids {
		threads, err := w.Proc.Threads(pid)
		if err != nil {
			// Ended meanwhile.
			continue
		}
		for _, tid := range threads {
			if !here[tid] && w.inOtherCgroup(c, pid, tid) {
				return fmt.Errorf("cgroup %q: thread %d of process %d is in another %s cgroup; moving the process would "+
					"bring them together for good", c.From, tid, pid, c.Controller)
			}
		}
	}
	return nil
}

// inOtherCgroup tells a thread that is elsewhere from one that was started, or has ended, since we looked.
func (w processes) inOtherCgroup(c change.Change, pid, tid int) bool {
	tids, err := w.FS.Threads(c.Controller, c.From)
	if err != nil || slices.Contains(tids, tid) {
		return false
	}
	threads, err := w.Proc.Threads(pid)
	return err == nil && slices.Contains(threads, tid)
}

// members collects the processes of a cgroup and of all below it.
func (w processes) members(c cgroup.Controller, path string, depth int, into map[int]bool) error {
	pids, err := w.FS.Procs(c, path)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		into[pid] = true
	}
	if len(into) > cgroup.MaxPids || depth > cgroup.MaxDepth {
		return fmt.Errorf("cgroup %q: %w", path, cgroup.ErrTooMuch)
	}
	children, err := w.FS.Children(c, path)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := w.members(c, child, depth+1, into); err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
			return err
		}
	}
	return nil
}

// pause waits a little, or until the context ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(shortPause):
	}
}
