package rebalance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/numa"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// mostRemote is the part of a container's memory that may be on other nodes when
// its cpuset.mems is narrowed: on v2 the kernel moves the rest while the writer
// waits.
const mostRemote = 0.01

// Pager moves the memory of processes; package pages, or a test's own.
type Pager interface {
	// Where counts the bytes of a process on each NUMA node.
	Where(pid int) (map[int]uint64, error)
	// Move moves them to the nodes, a little at a time.
	Move(ctx context.Context, pid int, nodes []int) error
}

// HostPager is package pages.
type HostPager struct{}

// Where implements Pager.
func (HostPager) Where(pid int) (map[int]uint64, error) { return numa.Where(pid) }

// Move implements Pager.
func (HostPager) Move(ctx context.Context, pid int, nodes []int) error {
	_, err := numa.Move(ctx, pid, nodes)
	return err
}

// Followed is what came of a container's memory.
type Followed struct {
	// Nodes are those that its CPUs want memory on.
	Nodes cpuset.CPUSet
	// Remote is the part of its memory that is elsewhere now, 0 to 1; nil: not all
	// of it could be looked at (Unseen), or it has none.
	Remote *float64
	// Unseen says why the memory of one of its processes could not be looked at;
	// nil: that of all was. Memory that was not seen may be anywhere.
	Unseen error
	// Narrowed: it may use memory of those nodes only from now on. Otherwise
	// its cpuset.mems stays as wide as it was made.
	Narrowed bool
}

// Follow moves the memory of a container that asked for it to the NUMA nodes of
// its CPUs: cpuset.mems is widened to what it is and what it shall be, pages are
// moved, and only when all of them were seen and all but mostRemote are there it
// is narrowed. A container whose memory was not seen keeps its nodes.
// Both writes are in the journal and end with the pin. Killed between, the memory
// nodes are wide, and Follow may be called again.
func Follow(ctx context.Context, env Env, pager Pager, target string) (Followed, error) {
	var out Followed
	facts, err := env.Facts(ctx)
	if err != nil {
		return out, err
	}
	h, _, err := remedy.Placing(facts, target)
	if err != nil {
		return out, err
	}
	plan, err := remedy.WidenMems(facts, target, h.Placed())
	if err != nil {
		return out, err
	}
	out.Nodes = plan.Mems
	if err := widen(ctx, env, facts, target, h.Placed()); err != nil {
		return out, err
	}
	if out.Remote, out.Unseen, err = movePages(ctx, env.Apply.FS, pager, plan.Set, plan.Mems.List()); err != nil {
		return out, err
	}
	if out.Remote == nil || *out.Remote >= mostRemote {
		return out, nil
	}
	if facts, err = env.Facts(ctx); err != nil {
		return out, err
	}
	narrow, err := remedy.NarrowMems(facts, target)
	if err != nil {
		return out, err
	}
	if len(narrow.Changes) > 0 {
		if _, err := apply.Replace(ctx, env.Apply, []txn.Part{narrow.Part()}); err != nil {
			return out, err
		}
	}
	out.Narrowed = true
	return out, nil
}

// widen lets a container use the memory of the nodes of CPUs as well.
func widen(ctx context.Context, env Env, facts hoststate.Facts, target string, at cpuset.CPUSet) error {
	plan, err := remedy.WidenMems(facts, target, at)
	if err == nil && len(plan.Changes) > 0 {
		_, err = apply.Replace(ctx, env.Apply, []txn.Part{plan.Part()})
	}
	return err
}

// movePages moves the memory of all processes at and below a cpuset and tells
// which part of it is elsewhere then (nil: not all was seen, or there is none),
// and why some was not seen.
func movePages(ctx context.Context, fsys cgroup.FS, pager Pager, set string, nodes []int) (remote *float64, unseen, err error) {
	all := map[int]uint64{}
	err = cgroup.Walk(fsys, cgroup.CPUSet, set, func(path string) error {
		pids, err := fsys.Procs(cgroup.CPUSet, path)
		if err != nil {
			return gone(err)
		}
		for _, pid := range pids {
			if pid == 0 {
				return errors.New("some of its processes are outside our PID namespace: their memory cannot be moved")
			}
			if err := pager.Move(ctx, pid, nodes); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				continue // it ended, or its memory shows as remote below
			}
		}
		for _, pid := range pids {
			bytes, err := pager.Where(pid)
			if err != nil {
				if unseen == nil && !ended(fsys, path, pid, err) {
					unseen = err
				}
				continue
			}
			for node, n := range bytes {
				all[node] += n
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("moving the memory of %.200q: %w", set, err)
	}
	if share, ok := numa.Remote(all, nodes); ok && unseen == nil {
		remote = &share
	}
	return remote, unseen, nil
}

// ended tells whether err means no more than that a process is no longer there.
// That its file is missing does not suffice: without CONFIG_NUMA no process has
// numa_maps.
func ended(fsys cgroup.FS, path string, pid int, err error) bool {
	if errors.Is(err, unix.ESRCH) {
		return true
	}
	pids, err := fsys.Procs(cgroup.CPUSet, path)
	return errors.Is(err, cgroup.ErrNoCgroup) || err == nil && !slices.Contains(pids, pid)
}
