package live

import (
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
