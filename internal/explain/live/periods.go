package live

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/text"
)

// PeriodsAround is how much before and after a moment of the past is explained from periods alone.
const PeriodsAround = 30 * time.Second

// Cells per row, and rows at most, of the timeline of periods: one cell is one period, or several where they are short.
const (
	periodsPerRow = 50
	maxPeriodRows = 60
)

// FromPeriods explains a past stretch of time from the periods of the flight recorder, which has no events.
// The explanation has stopped time and width, but not which threads spent the quota. periods are in order of
// time.
func FromPeriods(c flightrecorder.Identity, periods []flightrecorder.Period) diagnose.Explanation {
	e := diagnose.Explanation{Target: c.Name, LimitUnknown: true, NotMeasured: []string{
		"causes, pools, waiting, the limit: the flight recorder has only periods of that time, no events"}}
	if len(periods) == 0 {
		e.Verdict = fmt.Sprintf("The flight recorder has nothing of %s around that time.", text.Sanitize(c.Name, 0))
		return e
	}
	first := periods[0]
	e.Start = first.End.Add(-first.Length)
	e.Window = periods[len(periods)-1].End.Sub(e.Start)
	var stopped time.Duration
	var throttled, all uint64
	joined, lost := false, false
	used, most := 0.0, 0
	var gap time.Duration
	for _, p := range periods {
		if p.Flags&flightrecorder.Gap == 0 {
			all++
		} else {
			gap += p.Length
		}
		if p.Flags&flightrecorder.Throttled != 0 {
			throttled++
		}
		joined = joined || p.Flags&flightrecorder.Joined != 0
		lost = lost || p.Flags&flightrecorder.Lost != 0
		stopped += time.Duration(math.Round(p.Stopped * float64(p.Length)))
		used += p.MeanWidth * p.Length.Seconds()
		most = max(most, p.MostWidth)
	}
	e.Stopped = &stopped
	if joined {
		e.NotMeasured = append(e.NotMeasured, "periods: the flight recorder merged some")
	} else {
		e.Periods, e.ThrottledPeriods = &all, &throttled
	}
	if gap > 0 {
		e.NotMeasured = append(e.NotMeasured,
			fmt.Sprintf("%v of it: nothing ran, or no agent looked; it counts as idle", gap.Round(time.Millisecond)))
	}
	if lost {
		e.NotMeasured = append(e.NotMeasured, "some events were lost: widths and stopped time may be too low")
	}
	e.MeanWidth = new(used / max(e.Window.Seconds(), 1e-9))
	e.Verdict = fmt.Sprintf("%s was stopped for %v of %v; it used %.2f CPUs on average and up to %d at once. Which "+
		"threads spent the quota was not recorded.",
		text.Sanitize(c.Name, 0), stopped.Round(time.Millisecond), e.Window.Round(time.Millisecond), *e.MeanWidth, most)
	e.Timeline = periodTimeline(e.Start, periods)
	return e
}

// periodTimeline makes a cell of each period, or of as many as it takes that all of them have room.
func periodTimeline(start time.Time, periods []flightrecorder.Period) []diagnose.Row {
	perCell := (len(periods) + periodsPerRow*maxPeriodRows - 1) / (periodsPerRow * maxPeriodRows)
	var rows []diagnose.Row
	for part := range slices.Chunk(periods, periodsPerRow*perCell) {
		row := diagnose.Row{Start: part[0].End.Add(-part[0].Length).Sub(start)}
		row.Length = part[len(part)-1].End.Sub(start) - row.Start
		for of := range slices.Chunk(part, perCell) {
			cell, throttled := periodCell(of)
			row.Throttled = row.Throttled || throttled
			row.Cells = append(row.Cells, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// periodCell is the cell of some periods that follow one another: means weighted by their lengths.
func periodCell(periods []flightrecorder.Period) (c diagnose.Cell, throttled bool) {
	length := 0.0
	for _, p := range periods {
		throttled = throttled || p.Flags&flightrecorder.Throttled != 0
		seconds := p.Length.Seconds()
		length += seconds
		c.MeanWidth += p.MeanWidth * seconds
		c.Stopped += p.Stopped * seconds
		c.MostWidth = max(c.MostWidth, p.MostWidth)
	}
	if length > 0 {
		c.MeanWidth /= length
		c.Stopped /= length
	}
	return c, throttled
}
