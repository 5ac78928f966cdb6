package top

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// Frame is all containers at one moment.
type Frame struct {
	At   time.Time
	Rows []containerRow
	// Note is shown above the table: what cannot be told here, and why.
	Note string
}

// containerRow is one container over the last window. Pointers are nil where a thing was not measured.
type containerRow struct {
	Path, Name string
	// LimitCPUs nil: Unlimited says whether there is none or it is not known.
	LimitCPUs *float64
	Unlimited bool
	UsedCPUs  *float64
	// MostWidth is the most CPUs in use at once, Wanted the mean of running and runnable threads.
	MostWidth *int
	Wanted    *float64
	// StoppedLow and StoppedHigh bound stopped time as a share of the window; equal: exact.
	StoppedLow, StoppedHigh *float64
	// By is whose quota: "self" or an ancestor's path.
	By string
	// Cause is the one that cost most in the last ten seconds; "": not told.
	Cause diagnose.Cause
	// Timeline is the last seconds, a cell per 100 ms or per period, the newest last.
	Timeline []timelineCell
}

// timelineCell is a stretch of a timeline.
type timelineCell struct {
	// Width is the mean of CPUs in use; below 0: not measured.
	Width float64
	// Stopped is the share of the cell in which a quota held it back.
	Stopped float64
}

// stopped is what rows are ranked by; not measured is last.
func (r *containerRow) stopped() float64 {
	if r.StoppedHigh == nil {
		return -1
	}
	return *r.StoppedHigh
}
