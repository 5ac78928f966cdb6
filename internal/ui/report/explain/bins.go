package explain

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/histogram"
)

// bin is a row of the histogram: so many CPUs, From to To, with the time spent there.
type bin struct {
	From, To               int
	Width, Wanted, Sampled time.Duration
	Limit, Mean            bool // the limit is reached, the mean lies here
	OverLimit              bool // all of it lies above the limit
}

// maxBins bounds the rows. Where there would be more, numbers up to singleBins have a row
// each, and higher ones share rows.
const (
	maxBins    = 24
	singleBins = 12
)

// binsOf puts the three histograms into the same rows: one per number of CPUs. Of very
// many numbers the higher ones share rows of a quarter of their first number.
func binsOf(e *diagnose.Explanation) []bin {
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
	if most >= maxBins {
		single = singleBins
	}
	var bins []bin
	for n := 0; n <= single; n++ {
		bins = append(bins, bin{From: n, To: n})
	}
	for from := single + 1; from <= most; {
		step := max(4, from/4)
		bins = append(bins, bin{From: from, To: min(most, from+step-1)})
		from += step
	}
	at := func(n int) *bin {
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
func (b bin) label() string {
	if b.From == b.To {
		return strconv.Itoa(b.From)
	}
	return fmt.Sprintf("%d-%d", b.From, b.To)
}

func (x *view) histogram() {
	e := x.e
	if e.Width == nil && e.Wanted == nil {
		return
	}
	bins := binsOf(e)
	labels := make([]string, len(bins))
	column := func(title string, pick func(bin) time.Duration) histogram.Column {
		counts := make([]int, len(bins))
		total := 0
		for i, b := range bins {
			counts[i] = int(pick(b))
			total += counts[i]
		}
		return histogram.Column{Title: title, Counts: counts,
			Text: func(n int) string { return shareText(time.Duration(n), time.Duration(total)) }}
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
	columns := []histogram.Column{column(inUse, func(b bin) time.Duration { return b.Width })}
	if e.SampledWidth != nil && !x.narrow() {
		columns = append(columns, column("sampled every 10 ms", func(b bin) time.Duration { return b.Sampled }))
	}
	if e.Wanted != nil {
		columns = append(columns, column(wanted, func(b bin) time.Duration { return b.Wanted }))
	}
	x.Section("CPUs at once, by share of the time:")
	for _, line := range histogram.Lines(labels, columns, x.Columns, histogram.Bars{ASCII: x.ascii}) {
		x.Line(line)
	}
}
