package threadpool

import (
	"fmt"
	"math"
	"sort"

	"github.com/unthrottle/unthrottle/internal/text"
)

// defaultThreads is the default number of threads if the runtime believes it has n CPUs. A fraction is a limit, which
// the runtime first rounds in its own way. false: the default is no formula of n.
func (r Row) defaultThreads(n float64) (int, bool) {
	if r.size == nil || !(n > 0) || n > maxThreads {
		return 0, false
	}
	if n != math.Trunc(n) {
		n = float64(visibleCPUs(r.rule, n, int(math.Ceil(n))))
	}
	return count(math.Floor(r.size.eval(map[string]float64{"n": n})))
}

// CPUsFor is the least number of CPUs for which the library's default is so many threads or more. false: it is none of CPUs, or no host
// has so many.
func (r Row) CPUsFor(threads int) (int, bool) {
	if r.size == nil || !r.size.uses("n") {
		return 0, false
	}
	n := 1 + sort.Search(mostCPUs, func(i int) bool {
		size, ok := r.defaultThreads(float64(i + 1))
		return !ok || size >= threads
	})
	return n, n <= mostCPUs
}

// mostCPUs is how many CPUs a host has at most.
const mostCPUs = 8192

// FittingThreads is how many threads the pool should have so that it alone is not wider than a limit in CPUs. threads is
// how many it has, widest how many ran at once at most. Pools that work on the CPU get the limit, rounded
// down, and background pools half of it. A blocking pool shrinks by the factor by which it was too wide,
// because most of its threads wait. false: there is no limit.
func (r Row) FittingThreads(threads, widest int, limitCPUs float64) (int, bool) {
	if !(limitCPUs > 0) || math.IsInf(limitCPUs, 0) {
		return 0, false
	}
	var fit float64
	switch {
	case r.fit != nil:
		fit = r.fit.eval(map[string]float64{"limit": limitCPUs, "threads": float64(threads), "widest": float64(widest)})
	case r.Class == Blocking && float64(widest) <= limitCPUs:
		fit = float64(threads)
	case r.Class == Blocking:
		fit = math.Max(math.Ceil(limitCPUs), float64(threads)*limitCPUs/float64(widest))
	case r.Class == Background:
		fit = limitCPUs / 2
	default:
		fit = limitCPUs
	}
	n, ok := count(math.Floor(fit))
	return max(n, r.Least), ok
}

// count is how many threads or processes the pool has.
func (r Row) count(n int) string {
	if r.Processes {
		return text.CountOf(n, "process", "processes")
	}
	return text.Count(n, "thread")
}

// Unnamed reports whether the row is of all threads with the program's own name, whatever they do.
func (r Row) Unnamed() bool { return r.forms[0].program }

// smallLimit is the limit in CPUs below which a pool's size alone does not end throttling. Even one thread
// beside the runtime's own is then too wide (measured: at 1 CPU, with one I/O and one worker thread, 22 of
// 151 periods).
const smallLimit = 1.5

// Advice says in one sentence which setting sizes the pool, its default, and the size that fits the limit.
// threads is how many the pool has, and widest how many ran at once at most. limitCPUs is the effective limit
// (0 or less: none), hostCPUs the CPUs that the process may run on. Advice is "" if the pool fits, or no
// setting sizes it.
func (r Row) Advice(threads, widest int, limitCPUs float64, hostCPUs int) string {
	fit, limited := r.FittingThreads(threads, widest, limitCPUs)
	switch {
	case r.Setting == "":
		return ""
	case !limited:
		return fmt.Sprintf("%s is sized by %s (%s).", r.Library, r.Setting, r.describeDefault(limitCPUs, hostCPUs))
	case threads <= fit || float64(widest) <= limitCPUs:
		return ""
	}
	advice := fmt.Sprintf("%s: %s and %d at once are more than the limit of %s: set %s to %d (%s), %s",
		r.Library, r.count(threads), widest, text.CPUs(math.Round(100*limitCPUs)/100), r.Setting, fit,
		r.describeDefault(limitCPUs, hostCPUs), r.effectiveFrom())
	if limitCPUs < smallLimit {
		advice += "; at so small a limit that alone does not end throttling"
	}
	return advice + r.otherLibraries() + "."
}
