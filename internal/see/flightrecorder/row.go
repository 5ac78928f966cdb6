package flightrecorder

import (
	"math"
	"time"
)

// Period is one container over one period of the quota that binds it, or over a few short ones joined.
type Period struct {
	// End on the wall clock, exact to a millisecond once stored.
	End time.Time
	// Length; rounded to milliseconds when stored.
	Length time.Duration
	// MeanWidth and MostWidth are CPUs in use, mean and maximum.
	MeanWidth float64
	MostWidth int
	// Stopped is the share of the period in which a quota held back a runnable thread, 0 to 1.
	Stopped float64
	Flags   Flags
}

// Busy is what is known of a period that was told as longer than the quota's own, which is quota; 0: it is not known. The
// kernel's timer does not run while a container is idle, or lives on what a CPU took before. The first period after that is
// told with that time, and is cut to its end. What used more than one period has room for is several of them, of which some
// were not told.
func (p Period) Busy(quota time.Duration) Period {
	if quota <= 0 || p.Length < 2*quota {
		return p
	}
	times := p.Length.Seconds() / quota.Seconds()
	if p.MeanWidth*times > float64(p.MostWidth)*1.1 {
		p.Flags |= Joined
		return p
	}
	p.Length, p.MeanWidth, p.Stopped = quota, p.MeanWidth*times, min(1, p.Stopped*times)
	return p
}

// Flags of a period.
type Flags uint8

const (
	// Throttled means that the period ended with a CPU of the container throttled.
	Throttled Flags = 1 << iota
	// Joined means several periods in one row.
	Joined
	// Gap means that nothing ran, or nothing was seen, for the time of the row.
	Gap
	// Lost means that events were lost in the period; its figures are too low.
	Lost
)

// Row is a stored period. From the highest bit down it has 18 bits of milliseconds from the previous row's end to its
// own, 16 of mean width in 1/32 CPUs, 13 of most width, 10 of stopped share in 1/1023, 7 of flags.
type Row uint64

const (
	maxStepMS = 1<<18 - 1
	maxMean   = 1<<16 - 1
	maxMost   = 1<<13 - 1
	maxShare  = 1<<10 - 1
	maxFlags  = 1<<7 - 1
)

// pack stores a period that ends stepMS after the previous row. A value that exceeds its field becomes the field's
// largest.
func pack(stepMS int64, p Period) Row {
	return Row(clamp(float64(stepMS), maxStepMS)<<46 |
		clamp(p.MeanWidth*32, maxMean)<<30 |
		clamp(float64(p.MostWidth), maxMost)<<17 |
		clamp(p.Stopped*maxShare, maxShare)<<7 |
		uint64(p.Flags)&maxFlags)
}

func clamp(v float64, most uint64) uint64 {
	switch {
	case !(v > 0): // NaN as well
		return 0
	case v >= float64(most):
		return most
	}
	return uint64(math.Round(v))
}

// stepMS returns the time from the previous row's end to this one's.
func (r Row) stepMS() int64 { return int64(r >> 46) }

// period converts the row to a period that ends at end. Its length is the step: idle time between two periods has a row
// of its own, a Gap.
func (r Row) period(end time.Time) Period {
	return Period{
		End:       end,
		Length:    time.Duration(r.stepMS()) * time.Millisecond,
		MeanWidth: float64(r>>30&maxMean) / 32,
		MostWidth: int(r >> 17 & maxMost),
		Stopped:   float64(r>>7&maxShare) / maxShare,
		Flags:     Flags(r & maxFlags),
	}
}
