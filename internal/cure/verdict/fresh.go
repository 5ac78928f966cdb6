package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/text"
)

// A run of latencies that two answers share is no coincidence from so many latencies on, of which so many differ.
const (
	sharedRun   = 20
	sharedKinds = 5
)

// notFresh says why the last answer of a latency source need not be of the time after a change; "": nothing says so.
func (e Evidence) notFresh() string {
	switch {
	case slices.Equal(e.Before, e.After):
		return "the latency source gave the very same answer after the change as before it"
	case slices.Equal(e.First, e.After):
		return "the latency source gave the very same answer twice after the change, so that it may be from before it"
	}
	return ""
}

// Stale says why the second of two answers of a latency source, of different times, is not of its own time alone; "": nothing says so.
func Stale(before, after []float64) string {
	e := Evidence{Before: before, After: after}
	return cmp.Or(e.notFresh(), e.looksBack())
}

// looksBack says why the last answer of a latency source is in part of the time before a change; "": nothing says so.
func (e Evidence) looksBack() string {
	n := max(shared(e.Before, e.After), shared(e.After, e.Before))
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the %s after the change are from before it: let the source honour UNTHROTTLE_SINCE or {since}, "+
		"or declare how far it looks back (--slo-look-back, look_back)", n, text.CountOf(len(e.After), "latency", "latencies"))
}

// shared is how many latencies at the end of one answer are those at the beginning of the other, in the same order: what
// answers that look back over one another have in common. 0: fewer than sharedRun, or of fewer kinds than sharedKinds.
func shared(end, beginning []float64) int {
	// The longest suffix of end that is a prefix of beginning, by the failure function of Knuth, Morris and Pratt.
	fails, n := make([]int, len(beginning)), 0
	for i := 1; i < len(beginning); i++ {
		for n > 0 && beginning[i] != beginning[n] {
			n = fails[n-1]
		}
		if beginning[i] == beginning[n] {
			n++
		}
		fails[i] = n
	}
	n = 0
	for _, x := range end {
		for n > 0 && (n == len(beginning) || x != beginning[n]) {
			n = fails[n-1]
		}
		if len(beginning) > 0 && x == beginning[n] {
			n++
		}
	}
	kinds := map[float64]bool{}
	for _, x := range beginning[:n] {
		if kinds[x] = true; len(kinds) == sharedKinds {
			break
		}
	}
	if n < sharedRun || len(kinds) < sharedKinds {
		return 0
	}
	return n
}
