package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/timeline"
)

// maxRows bounds the rows of the timeline on a terminal.
const maxRows = 24

// idleWidth is the width below which nothing of the container ran in a cell.
const idleWidth = 0.02

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

// fullWidth is the width at which a cell is full: at least the limit, so that little use looks little.
func fullWidth(e *diagnose.Explanation) float64 {
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

// cellLength is the length of a cell, 0 where there is none.
func cellLength(r diagnose.Row, cells int) time.Duration {
	if cells == 0 {
		return 0
	}
	return r.Length / time.Duration(cells)
}

// usual is a row of the usual length: some begin or end within a period, some last two.
func usual(rows []diagnose.Row) diagnose.Row {
	byLength := slices.SortedFunc(slices.Values(rows), func(a, b diagnose.Row) int { return cmp.Compare(a.Length, b.Length) })
	return byLength[len(byLength)/2]
}

// gapBefore says that another stretch begins with row i.
func gapBefore(rows []diagnose.Row, i int) bool {
	return i > 0 && rows[i].Start != rows[i-1].Start+rows[i-1].Length
}

func (x *view) timeline() {
	rows := x.e.Timeline
	if len(rows) == 0 {
		return
	}
	const lead, tail = 12, 12
	glyphs := timeline.New(x.ascii)
	most := fullWidth(x.e)
	whole := usual(rows)
	cells := cellsJoined(whole.Cells, x.Columns-lead-tail)
	order := ""
	for i := 1; i < len(rows); i++ {
		if gapBefore(rows, i) {
			order = ", after a gap the next"
		}
	}
	x.Section(fmt.Sprintf("The worst stretch%s: a line is %s, a character %s; the height is CPUs in use, full is %s; "+
		"%c stopped by a quota, %c idle", order,
		text.Duration(whole.Length.Round(time.Millisecond)), text.Duration(cellLength(whole, len(cells))),
		figure.Trimmed(math.Round(most*100)/100), glyphs.Held, timeline.Idle))
	for i, r := range rows {
		if i == maxRows {
			x.Line(fmt.Sprintf("%12s%s more in --json", "", text.Count(len(rows)-i, "period")))
			break
		}
		if gapBefore(rows, i) {
			x.Line("")
		}
		line := fmt.Sprintf("%8.1f ms ", float64(r.Start)/1e6)
		for _, c := range cellsJoined(r.Cells, x.Columns-lead-tail) {
			switch {
			case cellStopped(c):
				line += x.Paint(page.Red, string(glyphs.Held))
			case c.MeanWidth < idleWidth:
				line += string(timeline.Idle)
			default:
				line += string(glyphs.Height(c.MeanWidth / most))
			}
		}
		if r.Throttled {
			line += " throttled"
		}
		x.Line(line)
	}
}
