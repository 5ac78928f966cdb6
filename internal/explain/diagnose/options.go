package diagnose

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

// Options of New; the zero value has the defaults.
type Options struct {
	// PoolOf returns the pool of thread tid with name comm in process tgid; nil: [threadpool.Names], with at
	// most maxPoolsOfProcess for each process. The analysis calls it once per thread and name.
	PoolOf func(tid, tgid uint32, comm string) string
	// Stops is called with each stretch of time in which one quota held threads back; nil: nobody asks. They come in the order of
	// their ends. One that goes on ends with the recording.
	Stops func(Stop)
	// Counts is called with how many threads ran (width), and how many ran or were runnable (wanted), from each moment on at which one of
	// them changed; nil: nobody asks.
	Counts func(from time.Duration, width, wanted int)
}

// Bounds of the memory of an analysis, whatever the events say.
const (
	maxPoolsOfProcess = 64
	maxPools          = 256  // of all processes together; the last one takes the rest
	maxOwners         = 1024 // other owners of CPUs; the last one takes the rest
	maxTracks         = 4    // levels whose periods the analysis follows
	maxCount          = 4096 // the last bar of a histogram has this number and more
	maxClasses        = 16   // distinct affinities of threads
)

// otherPools is the pool of all threads whose pools came after the first maxPools.
const otherPools = threadpool.Other

func (o *Options) complete() {
	if o.PoolOf == nil {
		names := threadpool.NewNames(maxPoolsOfProcess)
		o.PoolOf = func(_, tgid uint32, comm string) string { return names.Of(tgid, comm) }
	}
}
