package report

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// explainBin is a row of the histogram: so many CPUs, From to To, with the time spent there.
type explainBin struct {
	From, To               int
	Width, Wanted, Sampled time.Duration
	Limit, Mean            bool // the limit is reached, the mean lies here
	OverLimit              bool // all of it lies above the limit
}

// maxExplainBins bounds the rows; explainSingle is up to how many CPUs each has a row of its own where there are more.
const (
	maxExplainBins = 24
	explainSingle  = 12
)

// explainBins puts the three histograms into rows that they share: one per number of CPUs, and with very many the higher
// ones joined, each row as wide as all below it.
func explainBins(e *diagnose.Explanation) []explainBin {
	most := 0
	for _, all := range [][]diagnose.Bar{e.Width, e.Wanted, e.SampledWidth} {
		for _, b := range all {
			if b.Time > 0 {
				most = max(most, b.CPUs)
			}
		}
	}
	limitRow := -1
	if e.LimitCPUs != nil {
		limitRow = int(math.Ceil(*e.LimitCPUs - 1e-9))
		most = max(most, min(limitRow, 4096))
	}
	single := most
	if most >= maxExplainBins {
		single = explainSingle
	}
	var bins []explainBin
	for n := 0; n <= single; n++ {
		bins = append(bins, explainBin{From: n, To: n})
	}
	for from := single + 1; from <= most; {
		step := max(4, from/4)
		bins = append(bins, explainBin{From: from, To: min(most, from+step-1)})
		from += step
	}
	at := func(n int) *explainBin {
		for i := range bins {
			if n <= bins[i].To {
				return &bins[i]
			}
		}
		return &bins[len(bins)-1]
	}
	for _, b := range e.Width {
		at(b.CPUs).Width += b.Time
	}
	for _, b := range e.Wanted {
		at(b.CPUs).Wanted += b.Time
	}
	for _, b := range e.SampledWidth {
		at(b.CPUs).Sampled += b.Time
	}
	if e.MeanWidth != nil {
		at(int(math.Round(*e.MeanWidth))).Mean = true
	}
	for i := range bins {
		b := &bins[i]
		b.Limit = limitRow >= b.From && limitRow <= b.To
		b.OverLimit = limitRow >= 0 && b.From > limitRow
	}
	return bins
}

// label is "2", "16-19".
func (b explainBin) label() string {
	if b.From == b.To {
		return strconv.Itoa(b.From)
	}
	return fmt.Sprintf("%d-%d", b.From, b.To)
}

func (x *explainer) histogram() {
	e := x.e
	if e.Width == nil && e.Wanted == nil {
		return
	}
	bins := explainBins(e)
	labels := make([]string, len(bins))
	column := func(title string, of func(explainBin) time.Duration) histogramColumn {
		counts := make([]int, len(bins))
		total := 0
		for i, b := range bins {
			counts[i] = int(of(b))
			total += counts[i]
		}
		return histogramColumn{title: title, counts: counts,
			text: func(n int) string { return explainShare(time.Duration(n), time.Duration(total)) }}
	}
	for i, b := range bins {
		mark := ""
		switch {
		case b.Limit && b.Mean && !x.narrow():
			mark = "mean, limit "
		case b.Limit:
			mark = "limit "
		case b.Mean:
			mark = "mean "
		}
		labels[i] = mark + b.label()
	}
	inUse, wanted := "in use (width)", "wanted by threads"
	if x.narrow() {
		inUse, wanted = "in use", "wanted"
	}
	columns := []histogramColumn{column(inUse, func(b explainBin) time.Duration { return b.Width })}
	if e.SampledWidth != nil && !x.narrow() {
		columns = append(columns, column("sampled every 10 ms", func(b explainBin) time.Duration { return b.Sampled }))
	}
	if e.Wanted != nil {
		columns = append(columns, column(wanted, func(b explainBin) time.Duration { return b.Wanted }))
	}
	x.title("CPUs at once, by share of the time:")
	for _, line := range histogramLines(labels, columns, x.columns, bars{x.o.ASCII}) {
		x.line(line)
	}
}
