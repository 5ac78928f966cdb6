package explain

import (
	"math"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
)

// pageOverview is the whole recording as one row of columns.
type pageOverview struct {
	Column, Full string  // what a column lasts, and the CPUs of a full one
	Limit        float64 // the height of the limit; 0: it is not within the row
	Columns      []pageColumn
	Ticks        []string // times below the row, equally far apart
}

// pageColumn is drawn from X on, W wide and H high; Stopped is the opacity of the red behind it.
type pageColumn struct {
	X, W, Y, H, Stopped float64
	Title               string
}

// The drawing's size in its own units, and the distances between times below it.
const (
	overviewWidth  = 1000
	overviewHeight = 90
	overviewTicks  = 4
)

func overviewOf(e *diagnose.Explanation) *pageOverview {
	if len(e.Overview) < 2 {
		return nil
	}
	most := 1.0
	if e.LimitCPUs != nil {
		most = min(*e.LimitCPUs, 4096)
	}
	for _, s := range e.Overview {
		most = max(most, s.MeanWidth)
	}
	last := e.Overview[len(e.Overview)-1]
	all := (last.Start + last.Length).Seconds()
	o := &pageOverview{Column: text.Duration(e.Overview[0].Length), Full: cpusText(math.Round(most*100) / 100)}
	if e.LimitCPUs != nil && *e.LimitCPUs < most {
		o.Limit = overviewHeight * (1 - *e.LimitCPUs/most)
	}
	for _, s := range e.Overview {
		h := min(1, s.MeanWidth/most) * overviewHeight
		o.Columns = append(o.Columns, pageColumn{X: overviewWidth * s.Start.Seconds() / all, W: overviewWidth * s.Length.Seconds() / all,
			Y: overviewHeight - h, H: h, Stopped: min(1, max(0, s.Stopped)), Title: cellTitle(e, float64(s.Start)/1e6, s.Cell)})
	}
	for i := range overviewTicks + 1 {
		o.Ticks = append(o.Ticks, strconv.FormatFloat(all*float64(i)/overviewTicks, 'g', 3, 64)+" s")
	}
	return o
}
