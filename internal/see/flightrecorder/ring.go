package flightrecorder

import (
	"slices"
	"time"
)

// joinBelow is the length under which periods are joined: ringRows of them make an hour.
const joinBelow = time.Duration(keptFor) * time.Millisecond / ringRows

// gapAbove is how far a period's start may be from the previous row without a Gap in between; the period timer is late
// by less.
const gapAbove = 2 * time.Millisecond

// stepBack is from when on a period that ends before the newest row shows that the clock was set back. One that does by less
// is left out.
const stepBack = time.Second

// ring holds the newest rows of one container.
type ring struct {
	rows []Row // grows to ringRows, then wraps
	next int   // index of the next row
	// written counts rows written since the start, so that a flush knows the new ones.
	written uint64
	// endMS is the end of the newest row, Unix time in milliseconds; 0 means no row yet.
	endMS int64

	pending Period // periods shorter than joinBelow, until they are long enough
}

// add takes a period. Where the clock was set back it first removes the rows of the time that comes again, and reports so.
func (r *ring) add(p Period) (rewound bool) {
	if p.Length <= 0 {
		return false
	}
	if r.pending.Length > 0 {
		gap := p.End.Add(-p.Length).Sub(r.pending.End)
		if gap > gapAbove || p.Length >= joinBelow {
			rewound = r.flushPending()
		} else {
			p = join(r.pending, p)
			r.pending = Period{}
		}
	}
	if p.Length < joinBelow {
		r.pending = p
		return rewound
	}
	return r.put(p) || rewound
}

// join makes one row of two periods, each figure weighted by length.
func join(a, b Period) Period {
	whole := b.End.Sub(a.End.Add(-a.Length))
	la, lb, lw := a.Length.Seconds(), b.Length.Seconds(), whole.Seconds()
	if lw <= 0 {
		return b
	}
	return Period{
		End: b.End, Length: whole,
		MeanWidth: (a.MeanWidth*la + b.MeanWidth*lb) / lw,
		MostWidth: max(a.MostWidth, b.MostWidth),
		Stopped:   min(1, (a.Stopped*la+b.Stopped*lb)/lw),
		Flags:     a.Flags | b.Flags | Joined,
	}
}

// flushPending stores the joined period.
func (r *ring) flushPending() (rewound bool) {
	p := r.pending
	r.pending = Period{}
	return p.Length > 0 && r.put(p)
}

func (r *ring) put(p Period) (rewound bool) {
	end := p.End.UnixMilli()
	start := p.End.Add(-p.Length).UnixMilli()
	if r.endMS == 0 {
		r.endMS = start
	}
	if r.endMS-end > stepBack.Milliseconds() {
		r.rewind(start)
		rewound = true
	}
	if end <= r.endMS {
		return rewound
	}
	if start-r.endMS > gapAbove.Milliseconds() {
		r.gap(start)
	}
	r.fill(end, p)
	return rewound
}

// rewind removes the rows that end after until.
func (r *ring) rewind(until int64) {
	rows := slices.Concat(r.rows[r.oldest():], r.rows[:r.oldest()])
	for len(rows) > 0 && r.endMS > until {
		r.endMS -= rows[len(rows)-1].stepMS()
		rows = rows[:len(rows)-1]
	}
	r.rows, r.next = rows, len(rows)%ringRows
	if len(rows) == 0 {
		r.endMS = until
	}
}

// oldest is the index of the oldest row.
func (r *ring) oldest() int {
	if len(r.rows) < ringRows {
		return 0
	}
	return r.next
}

// gap covers the time up to until with Gap rows. After a pause longer than keptFor it drops all earlier rows.
func (r *ring) gap(until int64) {
	if until-r.endMS > keptFor {
		r.endMS = until
		r.rows, r.next = r.rows[:0], 0
		return
	}
	r.fill(until, Period{Flags: Gap})
}

// fill covers the time up to until with rows of a period, as many as its length takes.
func (r *ring) fill(until int64, p Period) {
	for until > r.endMS {
		step := min(until-r.endMS, maxStepMS)
		r.push(pack(step, p))
		r.endMS += step
	}
}

func (r *ring) push(row Row) {
	if len(r.rows) < ringRows {
		if len(r.rows) == cap(r.rows) {
			// append would take more than the bound of all rings together.
			larger := make([]Row, len(r.rows), min(ringRows, max(1024, 2*len(r.rows))))
			copy(larger, r.rows)
			r.rows = larger
		}
		r.rows = append(r.rows, row)
	} else {
		r.rows[r.next] = row
	}
	r.next = (r.next + 1) % ringRows
	r.written++
}

// periods returns the rows that end after from and start before to, in order.
func (r *ring) periods(from, to time.Time) []Period {
	var back []Period
	end := r.endMS
	for i := range len(r.rows) {
		row := r.rows[(r.next-1-i+2*ringRows)%ringRows]
		p := row.period(time.UnixMilli(end))
		if !p.End.After(from) {
			break
		}
		if p.End.Add(-p.Length).Before(to) {
			back = append(back, p)
		}
		end -= row.stepMS()
	}
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return back
}
