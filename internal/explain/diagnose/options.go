package diagnose

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

// Options of New; the zero value is a good one.
type Options struct {
	// PoolOf names the pool of a thread of process tgid that is called comm; nil: [pools.Names], with at most
	// maxPoolsOfProcess for each process. It is asked once per thread and name.
	PoolOf func(tgid uint32, comm string) string
	// Sample is the distance of the samples of SampledWidth; 0: 10 ms, as in seed 000.
	Sample time.Duration
}

// Bounds of what an analysis keeps, whatever it is told.
const (
	maxPoolsOfProcess = 64
	maxPools          = 256     // of all processes together; the last one takes the rest
	maxThreads        = 1 << 16 // known at once
	maxOwners         = 1024    // who else held CPUs; the last one takes the rest
	maxCPUs           = 4096
	maxLevels         = 64   // cgroups with or without a quota
	maxTracks         = 4    // levels whose periods are followed
	maxCount          = 4096 // the histograms' last bar holds as many and more
	maxClasses        = 16   // distinct sets of CPUs that threads are bound to
	// maxAt bounds the time of an event, 19.5 hours: thread time then fits in 63 bits whatever happens.
	maxAt = 1 << 46
)

// OtherPools is the pool of all threads whose pools came after the first maxPools.
const OtherPools = threadpool.Other

func (o *Options) complete() {
	if o.PoolOf == nil {
		names := threadpool.NewNames(maxPoolsOfProcess)
		o.PoolOf = names.Of
	}
	if o.Sample <= 0 {
		o.Sample = 10 * time.Millisecond
	}
}
