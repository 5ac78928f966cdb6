package forecast

import "time"

// Forecasts are tested on random workloads on 2 CPUs. The first 20 were looked at while the forecast was made; those of
// the page are held out.
const (
	heldOutFirst   = 20
	heldOutDraws   = 20
	heldOutRepeats = 3 // real runs under each remedy
	heldOutRunTime = 8 * time.Second
	heldOutSeeds   = 5
)

// What the hypervisor and others may have of the CPUs in a run, and how often one is made in which they have more.
const (
	mostSteal, mostOthers = 0.05, 0.03
	mostTries             = 3
)

// heldOut is one workload: forecasts from its first recording, and what came.
type heldOut struct {
	Draw uint64
	Pool string
	Rows []heldOutRow // that of None first
}

// heldOutRow is one remedy.
type heldOutRow struct {
	Remedy   string
	Foretold heldOutFigures
	Own      Error            // of the forecast by itself, as shares
	Came     []heldOutFigures // of each real run
}

// heldOutFigures are milliseconds of a pool, and shares of the periods and of the time.
type heldOutFigures struct {
	P50, P99, Max, Throttled, Stopped float64
	// Sampled is where the p99 of other requests of the same kind may be, in 90 % of cases, by how many of a run's are
	// above: the runs have the same requests, and do not show that. nil: of forecasts.
	Sampled *Range
}
