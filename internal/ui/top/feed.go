package top

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// stripKept bounds the cells kept per container.
const stripKept = 120

// Feed makes frames of snapshots. It keeps the strips, and only those of containers that are still there.
type Feed struct {
	strips map[string][]Cell
	// Note is shown with each frame.
	Note string
}

// Frame takes one snapshot in. periods gives the periods of a container that ended since the last frame, nil: none.
func (f *Feed) Frame(s observe.Snapshot, periods func(id uint64) []Cell) Frame {
	next := make(map[string][]Cell, len(s.Observations))
	frame := Frame{At: s.At, Note: f.Note, Rows: make([]Row, 0, len(s.Observations))}
	for i := range s.Observations {
		o := &s.Observations[i]
		r := rowOf(o)
		fresh := periods(o.CgroupID)
		if len(fresh) == 0 {
			fresh = cells(o)
		}
		strip := append(f.strips[r.Path][:len(f.strips[r.Path]):len(f.strips[r.Path])], fresh...)
		r.Strip = strip[max(0, len(strip)-stripKept):]
		next[r.Path] = r.Strip
		frame.Rows = append(frame.Rows, r)
	}
	f.strips = next
	return frame
}

func rowOf(o *observe.Observation) Row {
	r := Row{
		Path: o.Container.Group.Path, Name: name(o), By: o.ThrottledBy, Cause: Cause(o),
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

func name(o *observe.Observation) string {
	c := o.Container
	switch {
	case c.Pod != "" && c.Name != "":
		return c.Pod + "/" + c.Name
	case c.Name != "":
		return c.Name
	}
	return c.Group.Path
}

// cells are a strip without periods, as of a container without a quota, or made of counters: throttled time per tenth of a second where it was read so finely, else one cell
// for the window. Width is the mean, since counters know no other.
func cells(o *observe.Observation) []Cell {
	width := -1.0
	if o.UsedCPUs != nil {
		width = *o.UsedCPUs
	}
	if len(o.Cells) == 0 {
		_, high, ok := o.StoppedPerSecond()
		if !ok {
			high = 0
		}
		return []Cell{{Width: width, Stopped: high}}
	}
	var cells []Cell
	last := time.Duration(0)
	for _, c := range o.Cells {
		if length := c.End - last; length > 0 {
			cells = append(cells, Cell{Width: width, Stopped: min(1, c.Throttled.Seconds()/length.Seconds())})
		}
		last = c.End
	}
	return cells
}
