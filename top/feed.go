package top

import (
	"time"

	"github.com/unthrottle/unthrottle/diagnose"
	"github.com/unthrottle/unthrottle/observe"
)

// Live is what the probe saw of one container over a snapshot's window, beside its counters.
type Live struct {
	MostWidth int
	Wanted    *float64 // mean
	// Stopped is the exact share of the window.
	Stopped float64
	// Strip replaces the one made of counters.
	Strip []Cell
}

// stripKept bounds the cells kept per container.
const stripKept = 120

// Feed makes frames of snapshots. It keeps the strips, and only those of containers that are still there.
type Feed struct {
	strips map[string][]Cell
	// Cause judges one container; nil: causes are not told.
	Cause func(*observe.Observation, *Live) diagnose.Cause
	// Note is shown with each frame.
	Note string
}

// Frame takes one snapshot in. live gives what the probe saw of a container; nil: there is no probe.
func (f *Feed) Frame(s observe.Snapshot, live func(path string) *Live) Frame {
	next := make(map[string][]Cell, len(s.Observations))
	frame := Frame{At: s.At, Note: f.Note, Rows: make([]Row, 0, len(s.Observations))}
	for i := range s.Observations {
		o := &s.Observations[i]
		var l *Live
		if live != nil {
			l = live(o.Container.Group.Path)
		}
		r := f.row(o, l)
		next[r.Path] = r.Strip
		frame.Rows = append(frame.Rows, r)
	}
	f.strips = next
	return frame
}

func (f *Feed) row(o *observe.Observation, l *Live) Row {
	path := o.Container.Group.Path
	r := Row{
		Path: path, Name: name(o), By: o.ThrottledBy,
		LimitCPUs: o.LimitCPUs, Unlimited: o.LimitCPUs == nil && len(o.Levels) > 0, UsedCPUs: o.UsedCPUs,
	}
	if low, high, ok := o.StoppedPerSecond(); ok {
		r.StoppedLow, r.StoppedHigh = &low, &high
	}
	fresh := cells(o)
	if l != nil {
		r.MostWidth, r.Wanted = &l.MostWidth, l.Wanted
		r.StoppedLow, r.StoppedHigh = &l.Stopped, &l.Stopped
		fresh = l.Strip
	}
	strip := append(f.strips[path][:len(f.strips[path]):len(f.strips[path])], fresh...)
	r.Strip = strip[max(0, len(strip)-stripKept):]
	if f.Cause != nil {
		r.Cause = f.Cause(o, l)
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

// cells are a strip made of counters: throttled time per tenth of a second where it was read so finely, else one cell
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
