package apply

import (
	"errors"
	"fmt"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/topology"
)

// Bounds on looking at threads after a transaction.
const (
	maxThreadsPerGroup = 4096
	maxThreads         = 20_000
)

// NotInForce says that the kernel took a CPU list and runs the tasks on quite other CPUs.
type NotInForce struct {
	Path            string
	Want, Effective cpuset.CPUSet
}

// Error names the cause.
func (e *NotInForce) Error() string {
	return fmt.Sprintf("cgroup %q: cpuset.cpus: the kernel accepted %s, but its processes run on %s: the parent has none of "+
		"those CPUs", e.Path, e.Want, e.Effective)
}

// verify reads back what the kernel makes of the CPU lists just written. Processes that run on none of the CPUs
// wanted make the transaction fail, and it is rolled back. Fewer CPUs than wanted, and threads with an affinity of their
// own, are warnings: the kernel keeps what a program asked for (since 6.2 across changes of the cpuset too), and that
// is the program's right.
func (r *run) verify(holds []journal.Hold) error {
	looked := 0
	for _, h := range holds {
		if h.Kind != change.KindFile || h.File != cgroup.FileCPUs || h.Controller != cgroup.CPUSet {
			continue
		}
		path := string(h.Path)
		configured, effective, err := cgroup.CPUs(r.FS, path)
		if errors.Is(err, cgroup.ErrNoCgroup) {
			r.warn("cgroup %q ended meanwhile", path)
			continue
		}
		if err != nil {
			return err
		}
		if !configured.IsEmpty() && effective.Intersection(configured).IsEmpty() && !effective.IsEmpty() {
			return &NotInForce{Path: path, Want: configured, Effective: effective}
		}
		if !configured.IsSubsetOf(effective) {
			r.warn("cgroup %q: of the CPUs %s only %s are in force: its parent lacks the others", path, configured, effective)
		}
		if h.Op == change.OpSet || h.Op == change.OpRemoveCPUs || h.Op == change.OpAddCPUs {
			looked += r.threads(path, effective, maxThreads-looked)
		}
	}
	return nil
}

// threads compares the affinity of a cgroup's threads with the CPUs in force, and tells how many it looked at.
func (r *run) threads(path string, effective cpuset.CPUSet, limit int) int {
	if r.Proc == nil {
		r.warnOnce("the affinity of threads was not checked")
		return 0
	}
	tids, err := r.FS.Threads(cgroup.CPUSet, path)
	if err != nil {
		// Threaded cgroups and ones that ended; the settings themselves were read back.
		return 0
	}
	limit = min(limit, maxThreadsPerGroup)
	if len(tids) > limit {
		r.warn("cgroup %q: %d of its %d threads were checked", path, limit, len(tids))
		tids = tids[:limit]
	}
	outside, narrower, one := 0, 0, 0
	for _, tid := range tids {
		if tid == 0 {
			continue
		}
		allowed, err := r.Proc.Allowed(tid)
		switch {
		case err != nil:
		case !allowed.IsSubsetOf(effective):
			outside++
		case allowed.Size() == 1 && effective.Size() > 1:
			one++
		case !allowed.Equals(effective):
			narrower++
		}
	}
	if outside > 0 {
		r.warn("cgroup %q: %s may still run outside %s", path, text.Count(outside, "thread"), effective)
	}
	if one > 0 {
		r.warn("cgroup %q: %s to a single CPU by their own affinity", path, text.CountOf(one, "thread is bound", "threads are bound"))
	}
	if narrower > 0 {
		r.warn("cgroup %q: %s fewer CPUs than %s by their own affinity", path,
			text.CountOf(narrower, "thread uses", "threads use"), effective)
	}
	return len(tids)
}

func (r *run) warnOnce(text string) {
	for _, have := range r.res.Warnings {
		if have == text {
			return
		}
	}
	r.res.Warnings = append(r.res.Warnings, text)
}

// parseAllowed finds Cpus_allowed_list in /proc/TID/status.
func parseAllowed(status string) (cpuset.CPUSet, error) {
	value, ok := procfs.StatusField(status, "Cpus_allowed_list")
	if !ok {
		return cpuset.CPUSet{}, errors.New("no Cpus_allowed_list")
	}
	return topology.ParseList(value)
}
