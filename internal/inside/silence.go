package inside

import (
	"slices"
	"time"
)

// silence is a stretch in which no thread of ours ran, and what was used at its end.
type silence struct{ start, end, used time.Duration }

// minSilence is long beside an interrupt and a turn of the kernel's own threads.
const minSilence = 400 * time.Microsecond

// silences are the stretches in which every CPU has a gap.
func silences(gaps []Gap, cpus int) []silence {
	type edge struct {
		at, used time.Duration
		step     int
	}
	var edges []edge
	for _, g := range gaps {
		edges = append(edges, edge{g.Ran, g.Used, 1}, edge{g.End, g.Used, -1})
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return a.step - b.step
	})
	var all []silence
	open, since := 0, time.Duration(0)
	for _, e := range edges {
		if open == cpus && e.step < 0 && e.at-since >= minSilence {
			all = append(all, silence{since, e.at, e.used})
		}
		if open += e.step; open == cpus {
			since = e.at
		}
	}
	return all
}
