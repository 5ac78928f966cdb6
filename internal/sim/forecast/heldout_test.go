package forecast

import "time"

// The test uses random workloads on 2 CPUs. The development of the forecast looked at the first 20; the page
// has others.
const (
	heldOutFirst   = 20
	heldOutDraws   = 20
	heldOutRepeats = 3 // real runs under each remedy
	heldOutRunTime = 8 * time.Second
	heldOutSeeds   = 5
)

// The CPU time that the hypervisor and other programs may use in a run, and how often the test repeats a run
// that exceeds it.
const (
	mostSteal, mostOthers = 0.05, 0.03
	mostTries             = 3
)

// heldOut is one workload: forecasts from its first recording, and the real results.
type heldOut struct {
	Draw uint64
	Pool string
	Rows []heldOutRow // the row of None is first
}

// heldOutRow is one remedy.
type heldOutRow struct {
	Remedy    string
	Predicted heldOutFigures
	Own       Error            // of the forecast by itself, as shares
	Came      []heldOutFigures // of each real run
}

// heldOutFigures are milliseconds of a pool, and shares of the periods and of the time.
type heldOutFigures struct {
	P50, P99, Max, Throttled, Stopped float64
	// Sampled is the range of the p99 of other requests of the same kind, in 90 % of cases. The runs have the
	// same requests, so that they do not show this spread. nil: the figures are predicted.
	Sampled *Range
}
