package demand

import (
	"cmp"
	"slices"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Pool is a thread pool in the recordings of a slot: the most of each figure. Pools of processes of one name are one.
type Pool struct {
	// Pool is the key of its row in the table of known pools, package threadpool; "": the table has none, and Name is what the
	// names of its threads have in common.
	Pool string `parquet:"pool,dict"`
	Name string `parquet:"name,dict" sql:"thread_name"`
	// Threads are those that there were at once. Runnable is how many of them ran or were runnable at once, RunnableP99 how
	// many in 99 % of a recording, and Running how many ran at once.
	Threads     int32 `parquet:"threads,dict" bounds:"(0,4194304]"`
	Runnable    int32 `parquet:"runnable,dict" bounds:"[0,threads]"`
	RunnableP99 int32 `parquet:"runnable_p99,dict" bounds:"[0,runnable]"`
	Running     int32 `parquet:"running,dict" bounds:"[0,runnable]"`
	// DefaultCPUs is for how many CPUs, at least, the library's default is so many threads; nil: for none, or it is no matter
	// of CPUs.
	DefaultCPUs *int32 `parquet:"default_cpus,optional,dict" bounds:"(0,8192]"`
}

// MostPools bounds the pools of a row: those with most threads, of at least leastThreads.
const MostPools = 8

const (
	leastThreads = 2
	longestPool  = 64
)

// pools are those of a slot.
type pools []Pool

func (all *pools) add(more []Pool) {
	for _, p := range more {
		p.Pool, p.Name = text.Sanitize(p.Pool, longestPool), text.Sanitize(p.Name, longestPool)
		i := slices.IndexFunc(*all, func(o Pool) bool { return o.Pool == p.Pool && o.Name == p.Name })
		switch {
		case p.Threads < leastThreads:
		case i < 0:
			*all = append(*all, p)
		default:
			o := &(*all)[i]
			if p.Threads > o.Threads {
				o.Threads, o.DefaultCPUs = p.Threads, p.DefaultCPUs
			}
			o.Runnable, o.RunnableP99, o.Running = max(o.Runnable, p.Runnable), max(o.RunnableP99, p.RunnableP99),
				max(o.Running, p.Running)
		}
	}
	slices.SortFunc(*all, func(a, b Pool) int {
		return cmp.Or(cmp.Compare(b.Threads, a.Threads), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
	})
	*all = (*all)[:min(len(*all), MostPools)]
}

// AddPools takes the thread pools in a recording of a container. They count for the slot under way; those of a container
// that the slot has no row of are dropped.
func (r *Rows) AddPools(cgroup uint64, more []Pool) {
	if s := r.openOf(cgroup); s != nil {
		(*pools)(&s.row.Pools).add(more)
	}
}
