package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// maxScheduled bounds the threads whose policy one transaction changes: each has a line in the journal, on disk before
// the thread is touched.
const maxScheduled = 2048

// schedRounds bounds how often threads are looked for that were born meanwhile: a round in which none is found ends it.
const schedRounds = 64

// errNoSched: a policy is to be touched and there is nothing to do it with.
var errNoSched = errors.New("the scheduling policy of threads cannot be read or set here")

// NotRealtime tells why a cgroup's threads get no real-time policy.
type NotRealtime struct{ Path, Why, Hint string }

// Error names the way out.
func (e *NotRealtime) Error() string {
	return fmt.Sprintf("cgroup %q: no real-time policy for its threads: %s; %s", e.Path, e.Why, e.Hint)
}

// policy is the scheduling policy of one thread, or of the rest of a cgroup's threads.
type policy struct{ inCgroup }

func (policy) normalise(c change.Change) (change.Change, error) {
	if _, one := schedpolicy.Thread(c.File); !one && c.File != schedpolicy.Rest || c.Path == "" {
		return c, fmt.Errorf("%.80q names no threads", c.File)
	}
	c.Controller = cgroup.CPU
	return c, nil
}

// identity of a single thread is its number and start time: see ended.
func (w policy) identity(s journal.Setting, made uint64) (string, error) {
	if _, one := schedpolicy.Thread(s.File); one {
		return "", nil
	}
	return w.inCgroup.identity(s, made)
}

func (w policy) exists(s journal.Setting) (bool, error) {
	if _, one := schedpolicy.Thread(s.File); one {
		return true, nil
	}
	return w.inCgroup.exists(s)
}

// ignorable reports a thread that ended.
func (policy) ignorable(_ change.Change, err error) (string, bool) {
	return "", errors.Is(err, fs.ErrNotExist)
}

func (policy) traits() traits { return traits{valued: true, short: true} }

// withThreads puts, before each change of the policy of a cgroup's threads, one for every thread that there is now, so
// that each is in the journal by number and start time. Only ordinary threads are changed: a program that chose a
// policy for some keeps it.
func (w policy) withThreads(changes []change.Change) ([]change.Change, error) {
	var all []change.Change
	for _, c := range changes {
		if c.Kind == change.KindSched && c.File == schedpolicy.Rest {
			threads, err := w.ordinary(c)
			if err != nil {
				return nil, err
			}
			all = append(all, threads...)
		}
		all = append(all, c)
	}
	return all, nil
}

// ordinary are the changes of the single threads, or why there must be none.
func (w policy) ordinary(c change.Change) ([]change.Change, error) {
	if w.Sched == nil {
		return nil, fmt.Errorf("%s: %w", c.Key(), errNoSched)
	}
	refuse := func(path, why, hint string) ([]change.Change, error) {
		return nil, &NotRealtime{Path: path, Why: why, Hint: hint}
	}
	switch bounded, err := w.Sched.Bounded(); {
	case err != nil:
		return nil, err
	case !bounded:
		return refuse(c.Path, "sched_rt_runtime_us is -1, so that one that never sleeps would stop the kernel's own threads on its CPU",
			"set kernel.sched_rt_runtime_us to 950000, its default")
	}
	var changes []change.Change
	err := w.eachThread(c.Path, func(path string, tids []int) error {
		if why, hint := w.noRuntime(path, tids); why != "" {
			return &NotRealtime{Path: path, Why: why, Hint: hint}
		}
		for _, tid := range tids {
			if tid == 0 {
				return outsideNamespace(path)
			}
			p, err := w.Sched.Read(tid)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue
			case err != nil:
				return err
			case p.BeforeOthers():
				return &NotRealtime{Path: path, Why: fmt.Sprintf("thread %d has the policy %q already: the program "+
					"sets them itself", tid, p),
					Hint: "leave it to the program"}
			case !p.Same(schedpolicy.Other):
				continue
			}
			one := c
			one.File, one.To = schedpolicy.File(tid), p.As(schedpolicy.Realtime).String()
			if changes = append(changes, one); len(changes) > maxScheduled {
				return &NotRealtime{Path: c.Path, Why: fmt.Sprintf("it has more than %d threads", maxScheduled),
					Hint: "name a cgroup with fewer"}
			}
		}
		return nil
	})
	return changes, err
}

// noRuntime tells why the kernel would refuse (v1 with CONFIG_RT_GROUP_SCHED: every new group has no runtime).
func (w policy) noRuntime(path string, tids []int) (why, hint string) {
	text, err := w.FS.Read(cgroup.CPU, path, cgroup.FileRTRuntime)
	if err != nil || len(tids) == 0 || strings.TrimSpace(text) != "0" {
		return "", "" // no such file: the kernel decides, thread by thread
	}
	return cgroup.FileRTRuntime + " is 0: the kernel gives the group no real-time runtime",
		"write one to that file, of the cgroups above it first (their sum is bounded by the parent's)"
}

// eachThread visits the threads at and below a cgroup, cgroup by cgroup.
func (w policy) eachThread(path string, visit func(path string, tids []int) error) error {
	return cgroup.Walk(w.FS, cgroup.CPU, path, func(at string) error {
		tids, err := w.FS.Threads(cgroup.CPU, at)
		if errors.Is(err, cgroup.ErrNoCgroup) {
			return fs.SkipDir
		}
		if err != nil {
			return err
		}
		return visit(at, tids)
	})
}

// read is the policy of a thread; of the rest of a cgroup sched.Realtime if any of them has it.
func (w policy) read(_ context.Context, k change.Key) (string, error) {
	if w.Sched == nil {
		return "", fmt.Errorf("%s: %w", k, errNoSched)
	}
	if tid, ok := schedpolicy.Thread(k.File); ok {
		p, err := w.Sched.Read(tid)
		return p.String(), err
	}
	if !cgroup.Exists(w.FS, cgroup.CPU, k.Path) {
		return "", &cgroup.Error{Op: cgroup.OpRead, Path: k.Path, File: k.File, Kind: cgroup.ErrNoCgroup}
	}
	found := schedpolicy.Other
	err := w.eachThread(k.Path, func(_ string, tids []int) error {
		for _, tid := range tids {
			if p, err := w.Sched.Read(tid); err == nil && p.Same(schedpolicy.Realtime) {
				found = schedpolicy.Realtime
			}
		}
		return nil
	})
	return found.String(), err
}

func (w policy) id(k change.Key) (uint64, error) {
	if tid, ok := schedpolicy.Thread(k.File); ok {
		if w.Sched == nil {
			return 0, fmt.Errorf("%s: %w", k, errNoSched)
		}
		return w.Sched.ID(tid)
	}
	return w.FS.ID(cgroup.CPU, k.Path)
}

// write gives a thread its policy, or the rest of a cgroup: all that have the one it is to leave, until a look
// finds none. Those born meanwhile inherit it from one another.
func (w policy) write(_ context.Context, c change.Change) error {
	if w.Sched == nil {
		return fmt.Errorf("%s: %w", c.Key(), errNoSched)
	}
	to, err := schedpolicy.Parse(c.To)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Key(), err)
	}
	if tid, ok := schedpolicy.Thread(c.File); ok {
		return w.Sched.Write(tid, to)
	}
	leaveAlone := schedpolicy.Realtime
	if to.BeforeOthers() {
		leaveAlone = schedpolicy.Other
	}
	for range schedRounds {
		changed := 0
		err := w.eachThread(c.Path, func(_ string, tids []int) error {
			for _, tid := range tids {
				p, err := w.Sched.Read(tid)
				if err != nil || !p.Same(leaveAlone) {
					continue // it ended, or has a policy that is not ours to change
				}
				if err := w.Sched.Write(tid, p.As(to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				changed++
			}
			return nil
		})
		if err != nil || changed == 0 {
			return err
		}
	}
	return fmt.Errorf("%s: threads keep coming faster than they can be given the policy %q", c.Key(), to)
}

// ended reports a thread that ended, also when another thread has its number now.
func (w policy) ended(s journal.Setting) (bool, error) {
	if _, one := schedpolicy.Thread(s.File); !one {
		return false, nil
	}
	id, err := w.id(s.Key())
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && id != s.ID, err
}
