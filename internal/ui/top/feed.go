package top

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// cellsKept bounds the cells kept per container.
const cellsKept = 120

// feed makes frames of snapshots. It keeps the timelines and the causes of the last looks, and only those of containers
// that are still there.
type feed struct {
	timelines map[string][]timelineCell
	recent    map[string]recent // the causes of the last looks
	// Note is shown with each frame.
	Note string
}

// Frame takes one snapshot in. periods gives the periods of a container that ended since the last frame, nil: none.
func (f *feed) Frame(s observe.Snapshot, periods func(id uint64) []timelineCell) Frame {
	next, looks := make(map[string][]timelineCell, len(s.Observations)), make(map[string]recent, len(s.Observations))
	frame := Frame{At: s.At, Note: f.Note, Rows: make([]containerRow, 0, len(s.Observations))}
	for i := range s.Observations {
		o := &s.Observations[i]
		r := rowOf(o)
		looks[r.Path] = f.recent[r.Path].with(look{s.At, r.Cause, r.stopped()})
		r.Cause = looks[r.Path].cause()
		fresh := periods(o.CgroupID)
		if len(fresh) == 0 {
			fresh = cells(o)
		}
		timeline := append(f.timelines[r.Path][:len(f.timelines[r.Path]):len(f.timelines[r.Path])], fresh...)
		r.Timeline = timeline[max(0, len(timeline)-cellsKept):]
		next[r.Path] = r.Timeline
		frame.Rows = append(frame.Rows, r)
	}
	f.timelines, f.recent = next, looks
	return frame
}

func rowOf(o *observe.Observation) containerRow {
	r := containerRow{
		Path: o.Container.Group.Path, Name: o.Container.Name, By: o.ThrottledBy, Cause: live.FromCounters(*o, "").Cause,
		LimitCPUs: o.LimitCPUs, Unlimited: o.LimitCPUs == nil && len(o.Levels) > 0, UsedCPUs: o.UsedCPUs,
	}
	if low, high, ok := o.StoppedPerSecond(); ok {
		r.StoppedLow, r.StoppedHigh = &low, &high
	}
	if o.Width != nil {
		r.MostWidth = new(observe.Most(o.Width))
	}
	if mean, ok := observe.Mean(o.Wanted); ok {
		r.Wanted = &mean
	}
	return r
}

// cells are the timeline of a container without periods: one without a quota, or one
// of which only counters are known. There is a cell per tenth of a second where
// throttled time was read so finely, else one for the window. Width is the mean,
// since counters know no other.
func cells(o *observe.Observation) []timelineCell {
	width := -1.0
	if o.UsedCPUs != nil {
		width = *o.UsedCPUs
	}
	if len(o.Cells) == 0 {
		_, high, ok := o.StoppedPerSecond()
		if !ok {
			high = 0
		}
		return []timelineCell{{Width: width, Stopped: high}}
	}
	var cells []timelineCell
	last := time.Duration(0)
	for _, c := range o.Cells {
		if length := c.End - last; length > 0 {
			cells = append(cells, timelineCell{Width: width, Stopped: min(1, c.Throttled.Seconds()/length.Seconds())})
		}
		last = c.End
	}
	return cells
}
