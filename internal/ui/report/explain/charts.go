package explain

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
)

// pageChart is one histogram as columns: CPUs from left to right, share of the time upwards.
type pageChart struct {
	Title, Note string
	Width       int // of the drawing, in its own units; the height is chartHeight
	Bars        []pageBar
	Grid        []pageGrid
	Marks       []pageMark
}

// pageBar is a column with, where there is one, the dot of the sampled share.
type pageBar struct {
	X, Y, W, H float64
	Class      string // "over" above the limit
	Label      string // below the column; "" for some where there are many
	LabelX     float64
	Dot        bool
	DotX, DotY float64
	Title      string
}

type pageGrid struct {
	Y    float64
	Text string
}

// pageMark is the limit or the mean: an upright line.
type pageMark struct {
	X           float64
	Class, Text string
	TextY       float64
}

const (
	chartHeight = 220 // without the labels below
	chartTop    = 38
	chartLeft   = 60
	chartWidth  = 460
	chartFloor  = chartHeight
	// A column is as wide as there is room for, within these bounds.
	leastColumn, mostColumn = 16.0, 72.0
	// labelWidth is the room of a label below a column.
	labelWidth = 34
)

// columnWidth is the width of a column where there are n.
func columnWidth(n int) float64 {
	return min(mostColumn, max(leastColumn, float64(chartWidth-chartLeft-12)/float64(max(1, n))))
}

// chartY is the height at which a share of the time (0 to 1) is drawn. The scale is the square root: beside
// 80 % of idle time, a linear scale hides the small bars above the limit.
func chartY(share float64) float64 {
	return chartFloor - math.Sqrt(min(1, max(0, share)))*(chartFloor-chartTop)
}

func pageCharts(e *diagnose.Explanation) []pageChart {
	if e.Width == nil && e.Wanted == nil {
		return nil
	}
	bins := binsOf(e)
	var charts []pageChart
	if e.Width != nil {
		c := pageChartOf(e, bins, func(b bin) time.Duration { return b.Width }, e.SampledWidth != nil)
		c.Title, c.Note = "CPUs in use at once (width)", "exact, weighted by time"
		if e.SampledWidth != nil {
			c.Note += "; dots: read every 10 ms, as a sampling tool sees it"
		}
		charts = append(charts, c)
	}
	if e.Wanted != nil {
		c := pageChartOf(e, bins, func(b bin) time.Duration { return b.Wanted }, false)
		c.Title, c.Note = "CPUs wanted at once", "threads running or runnable: the demand, whatever the quota allowed"
		charts = append(charts, c)
	}
	return charts
}

func pageChartOf(e *diagnose.Explanation, bins []bin, pick func(bin) time.Duration, sampled bool) pageChart {
	total, samples := time.Duration(0), time.Duration(0)
	for _, b := range bins {
		total += pick(b)
		samples += b.Sampled
	}
	last := 0
	for i, b := range bins {
		if pick(b) > 0 || b.Limit || sampled && b.Sampled > 0 {
			last = i
		}
	}
	bins = bins[:min(len(bins), last+2)]
	share := func(part, whole time.Duration) float64 { return percentOf(part, whole) / 100 }
	column := columnWidth(len(bins))
	c := pageChart{Width: max(chartWidth, chartLeft+int(column*float64(len(bins)))+12)}
	for _, g := range []float64{0.01, 0.05, 0.20, 0.50, 1} {
		c.Grid = append(c.Grid, pageGrid{chartY(g), strconv.Itoa(int(100*g)) + " %"})
	}
	labelled := int(math.Ceil(labelWidth / column)) // every so many columns
	for i, b := range bins {
		x := chartLeft + column*float64(i)
		s := share(pick(b), total)
		bar := pageBar{X: x + 0.12*column, W: 0.76 * column, Y: chartY(s), H: chartFloor - chartY(s), LabelX: x + column/2,
			Label: b.label(), Title: fmt.Sprintf("%s: %s (%s)", binText(b), shareText(pick(b), total), text.Duration(pick(b)))}
		if b.OverLimit {
			bar.Class = "over"
		}
		if b.From != b.To {
			bar.Label = strconv.Itoa(b.From) + "+"
		}
		if i%labelled != 0 {
			bar.Label = ""
		}
		if sampled && samples > 0 && b.Sampled > 0 {
			bar.Dot, bar.DotX, bar.DotY = true, x+column/2, chartY(share(b.Sampled, samples))
		}
		c.Bars = append(c.Bars, bar)
	}
	if e.LimitCPUs != nil {
		c.Marks = append(c.Marks, pageMark{chartX(bins, *e.LimitCPUs), "limit", "limit " +
			strconv.FormatFloat(*e.LimitCPUs, 'g', 4, 64), 11})
	}
	if e.MeanWidth != nil {
		c.Marks = append(c.Marks, pageMark{chartX(bins, *e.MeanWidth), "mean", "mean use " +
			strconv.FormatFloat(*e.MeanWidth, 'f', 2, 64), 28})
	}
	return c
}

// binText names a column: "3 CPUs", "13 to 16 CPUs".
func binText(b bin) string {
	if b.From == b.To {
		return text.Count(b.From, "CPU")
	}
	return fmt.Sprintf("%d to %d CPUs", b.From, b.To)
}

// chartX is where so many CPUs lie: the middle of a column is its number.
func chartX(bins []bin, cpus float64) float64 {
	for i, b := range bins {
		if cpus <= float64(b.To)+0.5 || i == len(bins)-1 {
			within := (cpus - float64(b.From) + 0.5) / float64(b.To-b.From+1)
			return chartLeft + columnWidth(len(bins))*(float64(i)+min(1, max(0, within)))
		}
	}
	return chartLeft
}

// pageTimeline is the timeline: rows of cells.
type pageTimeline struct {
	Line, Cell, Full string  // what a row and a cell last, and the CPUs of a full one
	Order            string  // why the rows are in this order; "": they follow each other
	Limit            float64 // the height of the limit; 0: it is not within the row
	Width            int
	Rows             []pageRow
	More             int
}

type pageRow struct {
	At        string
	Gap       bool // another stretch begins
	Throttled bool
	Cells     []pageCell
}

// pageCell is drawn as a column of height H, or as stopped.
type pageCell struct {
	X       int
	Y, H    float64
	Stopped float64 // opacity of the red behind it
	Title   string
}

const (
	timelineHeight = 22
	timelineCell   = 12
	timelineCells  = 60
)

func timelineOf(e *diagnose.Explanation) *pageTimeline {
	if len(e.Timeline) == 0 {
		return nil
	}
	most := fullWidth(e)
	s := &pageTimeline{Full: cpusText(math.Round(most*100) / 100)}
	if e.LimitCPUs != nil && *e.LimitCPUs < most {
		s.Limit = timelineHeight * (1 - *e.LimitCPUs/most)
	}
	whole := usual(e.Timeline)
	s.Line = text.Duration(whole.Length.Round(time.Millisecond))
	s.Cell = text.Duration(cellLength(whole, len(cellsJoined(whole.Cells, timelineCells))))
	for i, r := range e.Timeline {
		if i == maxPageRows {
			s.More = len(e.Timeline) - i
			break
		}
		cells := cellsJoined(r.Cells, timelineCells)
		row := pageRow{At: fmt.Sprintf("%.1f ms", float64(r.Start)/1e6), Throttled: r.Throttled,
			Gap: gapBefore(e.Timeline, i)}
		if row.Gap {
			s.Order = "The worst stretch comes first; after a gap comes the next."
		}
		s.Width = max(s.Width, timelineCell*len(cells))
		length := cellLength(r, len(cells))
		for k, c := range cells {
			h := min(1, c.MeanWidth/most) * timelineHeight
			if c.MeanWidth >= idleWidth {
				h = max(1.5, h)
			}
			row.Cells = append(row.Cells, pageCell{X: timelineCell * k, Y: timelineHeight - h, H: h, Stopped: min(1, max(0, c.Stopped)),
				Title: cellTitle(e, float64(r.Start+time.Duration(k)*length)/1e6, c)})
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// cellTitle tells what was measured of a cell that begins at so many ms.
func cellTitle(e *diagnose.Explanation, ms float64, c diagnose.Cell) string {
	title := fmt.Sprintf("%.1f ms: %.2f CPUs in use, at most %d", ms, c.MeanWidth, c.MostWidth)
	if e.Wanted != nil {
		title += fmt.Sprintf("; %.2f wanted", c.Wanted)
	}
	if e.Stopped != nil {
		title += fmt.Sprintf("; stopped %.0f %%", 100*c.Stopped)
	}
	return title
}
