package diagnose

import "time"

// Index of a Reason: a map by Reason would cost more than the rest of an analysis.
const (
	byOwnQuota = iota
	byAncestor
	byOwnThreads
	byNeighbour
	byHost
	bySteal
	byIdle
	byRealtime
	reasons
)

var reasonOf = [reasons]Reason{OwnQuota, AncestorQuota, OwnThreads, ByNeighbours, HostSystem, Steal, IdleUnused, RealtimeLimit}

// waits is thread time by reason, in nanoseconds.
type waits [reasons]int64

func (w *waits) add(reason int, d int64) {
	if d > 0 {
		w[reason] += d
	}
}

func (w *waits) sum() int64 {
	all := int64(0)
	for _, d := range w {
		all += d
	}
	return all
}

// byReason returns the measured reasons, also those without any time.
func (w *waits) byReason(measured [reasons]bool) map[Reason]time.Duration {
	m := map[Reason]time.Duration{}
	for i, d := range w {
		if measured[i] || d > 0 {
			m[reasonOf[i]] = span(d)
		}
	}
	return m
}
