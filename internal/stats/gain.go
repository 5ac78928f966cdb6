package stats

// What counts as a difference of latencies, wherever they are compared: a verdict, a trial, a choice by a forecast, a study.
const (
	// LeastGain is the share of a latency that a remedy must take off, and LeastGainMs how many milliseconds, to be worth a
	// change. What differs by less counts as equal: two runs of the kernel differ by as much.
	LeastGain, LeastGainMs = 0.1, 0.5
	// LeastStopped is the share of the time below which a quota's stops are as good as none.
	LeastStopped = 1e-3
	// MuchHarm is from which factor on another kind of requests becomes too slow.
	MuchHarm = 1.5
)

// Gains reports whether a latency is below what it was by so much that it is worth a change. Both are in ms.
//
// Worked example: from 20 to 18.1 ms is not, from 20 to 18 ms is, and from 2 to 1.6 ms is not.
func Gains(was, is float64) bool { return is <= was*(1-LeastGain) && was-is >= LeastGainMs }

// Alike reports whether a latency counts as equal to the best one. Both are in ms.
func Alike(best, ms float64) bool { return ms <= best*(1+LeastGain) || ms-best <= LeastGainMs }

// StoppedLonger reports whether quotas stop a container for longer than under another setting of the same remedy, as shares of the time,
// by what counts. Where requests take as long under both, the one that is stopped has less to spare: it is the first to stop requests once
// a little more work comes.
func StoppedLonger(share, other float64) bool { return share > other+LeastStopped }
