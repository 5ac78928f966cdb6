package report

import (
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
)

// maxExplainRows bounds the rows of the strip on a terminal.
const maxExplainRows = 24

// explainIdle is the width below which nothing of the container ran in a cell.
const explainIdle = 0.02

// cellsJoined joins neighbouring cells so that at most n remain.
func cellsJoined(cells []diagnose.Cell, n int) []diagnose.Cell {
	if len(cells) <= n || n < 1 {
		return cells
	}
	step := (len(cells) + n - 1) / n
	joined := make([]diagnose.Cell, 0, n)
	for i := 0; i < len(cells); i += step {
		part := cells[i:min(len(cells), i+step)]
		var sum diagnose.Cell
		for _, c := range part {
			sum.MeanWidth += c.MeanWidth / float64(len(part))
			sum.Stopped += c.Stopped / float64(len(part))
			sum.Wanted += c.Wanted / float64(len(part))
			sum.MostWidth = max(sum.MostWidth, c.MostWidth)
		}
		joined = append(joined, sum)
	}
	return joined
}

// cellStopped tells cells that are shown as stopped: for most of the cell a thread was held back, and hardly any ran.
func cellStopped(c diagnose.Cell) bool { return c.Stopped >= 0.5 && c.MeanWidth < 0.25 }

// stripMost is the width at which a cell is full: at least the limit, so that little use looks little.
func stripMost(e *diagnose.Explanation) float64 {
	most := 1.0
	if e.LimitCPUs != nil {
		most = min(*e.LimitCPUs, 4096)
	}
	for _, r := range e.Timeline {
		for _, c := range r.Cells {
			most = max(most, c.MeanWidth)
		}
	}
	return most
}

// explainCell is the length of a cell, 0 where there is none.
func explainCell(r diagnose.Row, cells int) time.Duration {
	if cells == 0 {
		return 0
	}
	return r.Length / time.Duration(cells)
}

func (x *explainer) strip() {
	rows := x.e.Timeline
	if len(rows) == 0 {
		return
	}
	const lead, tail = 12, 12
	heights, held := []rune("▁▂▃▄▅▆▇█"), '░'
	if x.o.ASCII {
		heights, held = []rune("123456789"), 'x'
	}
	most := stripMost(x.e)
	first := cellsJoined(rows[0].Cells, x.columns-lead-tail)
	x.title(fmt.Sprintf("The worst stretch: a line is %s, a character %s; the height is CPUs in use, full is %s; %c stopped by a quota, . idle",
		explainTime(rows[0].Length.Round(time.Millisecond)), explainTime(explainCell(rows[0], len(first))), trimmed(math.Round(most*100)/100), held))
	for i, r := range rows {
		if i == maxExplainRows {
			x.line(fmt.Sprintf("%12s%s more in --json", "", text.Count(len(rows)-i, "period")))
			break
		}
		if i > 0 && r.Start != rows[i-1].Start+rows[i-1].Length {
			x.line("")
		}
		line := fmt.Sprintf("%8.1f ms ", float64(r.Start)/1e6)
		for _, c := range cellsJoined(r.Cells, x.columns-lead-tail) {
			switch {
			case cellStopped(c):
				line += x.paint(lsRed, string(held))
			case c.MeanWidth < explainIdle:
				line += "."
			default:
				n := len(heights)
				line += string(heights[min(n-1, int(c.MeanWidth/most*float64(n)))])
			}
		}
		if r.Throttled {
			line += " throttled"
		}
		x.line(line)
	}
}
