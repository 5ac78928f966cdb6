package live

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
)

func TestFromPeriods(t *testing.T) {
	night := time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)
	var periods []flightrecorder.Period
	for i := range 120 {
		p := flightrecorder.Period{End: night.Add(time.Duration(i+1) * 100 * time.Millisecond),
			Length: 100 * time.Millisecond, MeanWidth: 0.5, MostWidth: 2}
		if i%2 == 0 {
			p.Stopped, p.Flags, p.MostWidth = 0.75, flightrecorder.Throttled, 7
		}
		periods = append(periods, p)
	}
	e := FromPeriods(flightrecorder.Identity{Name: "web\x1b"}, periods)
	if !e.Start.Equal(night) || e.Window != 12*time.Second || *e.Stopped != 4500*time.Millisecond ||
		*e.Periods != 120 || *e.ThrottledPeriods != 60 {
		t.Errorf("%v %v %v %d of %d", e.Start, e.Window, *e.Stopped, *e.ThrottledPeriods, *e.Periods)
	}
	if e.Cause != "" || e.Width != nil || e.Pools != nil || len(e.NotMeasured) == 0 {
		t.Errorf("claims more than periods tell: %+v", e)
	}
	if !strings.Contains(e.Verdict, "4.5s of 12s") || !strings.Contains(e.Verdict, "0.50 CPUs on average and up to 7") {
		t.Error(e.Verdict)
	}
	cells := 0
	for _, r := range e.Timeline {
		cells += len(r.Cells)
	}
	if cells != 120 || e.Timeline[1].Start != 5*time.Second {
		t.Errorf("%d cells, second row at %v", cells, e.Timeline[1].Start)
	}
	if strings.Contains(strings.Join(e.NotMeasured, "; "), "idle") {
		t.Errorf("not looked at for a while? %v", e.NotMeasured)
	}
	periods[3].Flags |= flightrecorder.Gap
	if e := FromPeriods(flightrecorder.Identity{Name: "web"},
		periods); !strings.Contains(strings.Join(e.NotMeasured, "; "), "100ms of it: nothing ran, or no agent looked") {
		t.Errorf("a gap without a note: %v", e.NotMeasured)
	}
	if e := FromPeriods(flightrecorder.Identity{Name: "web"}, nil); e.Stopped != nil ||
		!strings.Contains(e.Verdict, "flight recorder has nothing") {
		t.Errorf("no periods: %+v", e)
	}
}

// TestShortPeriodsHaveRoom: a minute of periods of 10 ms is all in the timeline, with several periods to a cell.
func TestShortPeriodsHaveRoom(t *testing.T) {
	start := time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)
	var periods []flightrecorder.Period
	for i := range 6000 {
		periods = append(periods, flightrecorder.Period{End: start.Add(time.Duration(i+1) * 10 * time.Millisecond),
			Length: 10 * time.Millisecond, MeanWidth: float64(i % 2), MostWidth: i % 2, Stopped: float64(i%2) / 2})
	}
	rows := FromPeriods(flightrecorder.Identity{Name: "web"}, periods).Timeline
	last := rows[len(rows)-1]
	if len(rows) > maxPeriodRows || last.Start+last.Length != time.Minute {
		t.Errorf("%d rows, the last one ends at %v", len(rows), last.Start+last.Length)
	}
	if c := last.Cells[0]; math.Abs(c.MeanWidth-0.5) > 1e-9 || c.MostWidth != 1 || math.Abs(c.Stopped-0.25) > 1e-9 {
		t.Errorf("two periods are %+v", c)
	}
}
