package explain

import (
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/rows"
)

// pageRemedies is the forecast of each remedy from the same recording.
type pageRemedies struct {
	Figure string // what is compared: "p99 of pool http-worker-*"
	Short  string // the same for the head of a column
	Rows   []pageRemedy
}

// pageRemedy is a row, with its figure as a part of the largest one.
type pageRemedy struct {
	rows.Line
	Percent float64
	Often   bool // stopped for so much of the time that it is marked
}

func remediesOf(f *forecast.Forecast, c *policy.Choice) *pageRemedies {
	p := &pageRemedies{Figure: rows.FigureOf(f.Judged), Short: rows.Figure(f.Judged)}
	lines, most := rows.Lines(f, c), 0.0
	for _, line := range lines {
		if line.Milliseconds != nil {
			most = max(most, *line.Milliseconds)
		}
	}
	for _, line := range lines {
		row := pageRemedy{Line: line, Often: line.Share >= alarm}
		if line.Milliseconds != nil && most > 0 {
			row.Percent = min(100, 100**line.Milliseconds/most)
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}
