package fleet

import (
	"fmt"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
)

// Defaults are the thread pools of the containers that run now, by library and setting.
type Defaults struct {
	// Containers is how many of them have a recording that shows their pools; of the others nothing is known.
	Containers int       `json:"containers"`
	Pools      []Default `json:"pools"`
	// More is how many more pools there are than are listed.
	More int `json:"pools_more"`
}

// Default is one pool in all containers that have it.
type Default struct {
	// Pool is its key in the table of known pools, Library what has it, Setting what sizes it; null: the table has none. Name is
	// then what the names of its threads have in common.
	Pool    *string `json:"pool" parquet:"pool,optional"`
	Library *string `json:"library" parquet:"library,optional"`
	Setting *string `json:"setting" parquet:"setting,optional"`
	Name    *string `json:"name" parquet:"name,optional"`
	// Services and Containers are how many have it.
	Services   int `json:"services" parquet:"services"`
	Containers int `json:"containers" parquet:"containers"`
	// Threads are those of all containers, each with the most that it had at once. Runnable are those that ran or were
	// runnable at once at most in each container, RunnableP99 in 99 % of the time; RunnableMost is the most in one.
	Threads      int64 `json:"threads" parquet:"threads"`
	Runnable     int64 `json:"runnable" parquet:"runnable"`
	RunnableP99  int64 `json:"runnable_p99" parquet:"runnable_p99"`
	RunnableMost int   `json:"runnable_most" parquet:"runnable_most"`
	// TooMany are threads beyond what fits the limits; null: what fits is not known, or no container has a limit.
	TooMany *int64 `json:"threads_too_many" parquet:"threads_too_many,optional"`
	// DefaultCPUs is the most CPUs, at least, for which the library's default is the size of a pool; null: for none.
	// BeyondLimit is in how many containers these are more than the limit, rounded up.
	DefaultCPUs *int `json:"default_cpus" parquet:"default_cpus,optional"`
	BeyondLimit int  `json:"containers_beyond_limit" parquet:"containers_beyond_limit"`
	// Cores come back at the same p99 with pools that fit, of services where recordings tell it and no other known pool is
	// too wide; null: of none.
	Cores *float64 `json:"cores" parquet:"cores,optional"`
}

// Surplus is how many threads are too many; where that is not known those that never wanted a CPU at once.
func (d Default) Surplus() int64 {
	if d.TooMany != nil {
		return *d.TooMany
	}
	return d.Threads - d.Runnable
}

const defaultsTitle = "Thread pools with more threads than fit their limits"

var defaultColumns = []column[Default]{
	words("LIBRARY", 16, 0, func(d Default) string {
		if d.Library != nil {
			return *d.Library
		}
		return "threads " + shownName(*d.Name)
	}),
	words("SETTING", 16, 1, func(d Default) string { return known(d.Setting) }),
	figures("SERVICES", 2, func(d Default) string { return strconv.Itoa(d.Services) }),
	figures("CONTAINERS", 4, func(d Default) string { return strconv.Itoa(d.Containers) }),
	figures("THREADS", 0, func(d Default) string { return strconv.FormatInt(d.Threads, 10) }),
	figures("TOO MANY", 0, func(d Default) string {
		if d.TooMany == nil {
			return figure.Missing
		}
		return strconv.FormatInt(*d.TooMany, 10)
	}),
	figures("RUNNABLE", 3, func(d Default) string { return strconv.FormatInt(d.Runnable, 10) }),
	figures("AT MOST", 0, func(d Default) string { return strconv.Itoa(d.RunnableMost) }),
	figures("DEFAULT OF", 5, func(d Default) string {
		if d.DefaultCPUs == nil {
			return figure.Missing
		}
		return text.Count(*d.DefaultCPUs, "CPU")
	}),
	figures("CORES", 0, func(d Default) string { return figure.Fixed(d.Cores, 1) }),
}

// tooWide are the pools with surplus threads, and how many more there are.
func tooWide(d Defaults) (rows []Default, left int) {
	for _, p := range d.Pools {
		if p.Surplus() > 0 {
			rows = append(rows, p)
		}
	}
	rows, left = first(rows)
	return rows, left + d.More
}

// defaultsAssume says what the table rests on.
func defaultsAssume(d Document) string {
	return fmt.Sprintf("From recordings of %d of %s: the most threads of each, and how many of them ever ran or were runnable at "+
		"once, in all containers together and at most in one. Default of: for so many CPUs, at least, the library makes as many. "+
		"'unthrottle sized' starts a program with pools that fit.", d.Defaults.Containers, text.Count(d.Containers, "container"))
}
