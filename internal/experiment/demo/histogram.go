package demo

import (
	"slices"
	"time"
)

// maxBins bounds the rows of a histogram: it should fit a screen with what
// stands around it.
const maxBins = 12

// binWidths are the widths to choose from. The default period of 100 ms is a
// multiple of all up to it, so that it is always an edge.
var binWidths = []time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 60 * time.Second,
}

// edges are the edges of at most maxBins bins that cover from least to most. They are
// multiples of the smallest width that does so. The first is least: no sleep is
// shorter than asked for, and a bin that cannot fill misleads. Beyond the widest the
// last bin takes all the rest.
func edges(least, most time.Duration) []time.Duration {
	width := binWidths[len(binWidths)-1]
	for _, w := range binWidths {
		if most/w-least/w < maxBins {
			width = w
			break
		}
	}
	all := []time.Duration{least}
	for at := (least/width + 1) * width; ; at += width {
		all = append(all, at)
		if at > most || len(all) > maxBins {
			break
		}
	}
	if last := &all[len(all)-1]; *last <= most {
		*last = most + time.Nanosecond
	}
	return all
}

// histogram counts the values between the edges; what lies outside goes to the
// first or last bin.
func histogram(edges, values []time.Duration) []Bin {
	bins := make([]Bin, len(edges)-1)
	for i := range bins {
		bins[i] = Bin{FromMs: millis(edges[i]), ToMs: millis(edges[i+1])}
	}
	for _, v := range values {
		i, found := slices.BinarySearch(edges, v)
		if !found {
			i--
		}
		bins[max(0, min(i, len(bins)-1))].Count++
	}
	return bins
}

// millis is a duration in ms, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Round(time.Microsecond).Microseconds()) / 1000 }
