package live

import (
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/text"
)

// PeriodsAround is how much before and after a moment of the past is explained from periods alone.
const PeriodsAround = 30 * time.Second

// Cells per row, and rows, of the timeline of periods: one cell is one period.
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

// periodTimeline makes a cell of each period.
func periodTimeline(start time.Time, periods []flightrecorder.Period) []diagnose.Row {
	var rows []diagnose.Row
	for i := 0; i < len(periods) && len(rows) < maxPeriodRows; i += periodsPerRow {
		part := periods[i:min(len(periods), i+periodsPerRow)]
		row := diagnose.Row{Start: part[0].End.Add(-part[0].Length).Sub(start)}
		row.Length = part[len(part)-1].End.Sub(start) - row.Start
		for _, p := range part {
			row.Throttled = row.Throttled || p.Flags&flightrecorder.Throttled != 0
			row.Cells = append(row.Cells, diagnose.Cell{MeanWidth: p.MeanWidth, MostWidth: p.MostWidth, Stopped: p.Stopped})
		}
		rows = append(rows, row)
	}
	return rows
}
