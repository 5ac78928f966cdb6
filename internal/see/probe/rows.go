package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
)

const (
	// rowLength is the length of rows made here, and how often rows are fetched where some are made here or the ring fills
	// fast. Else they are fetched every rowsEvery, because each wake-up costs more than a look at an empty ring.
	rowLength = 100 * time.Millisecond
	rowsEvery = 300 * time.Millisecond
	// manyRows in one fetch are an eighth of the ring.
	manyRows = 512
	// Times in units of rowLength: inheritedEvery is between two checks whether an ancestor's quota stops a container. It
	// has rows then, and for rememberStopped more.
	inheritedEvery, rememberStopped = 10, 50
)

// PeriodRows passes a row per period and watched container, at most half a second late. It ends with ctx or with
// an error of each. An idle container has no periods, hence no rows. It allows one caller at a time: ErrBusy.
func (p *Probe) PeriodRows(ctx context.Context, each func(PeriodRow) error) error {
	if p.options.WidthOnly || !p.kernel.timers {
		return errors.New("no rows per period: the probe counts width only, or this kernel does not show its timers")
	}
	if !p.rowing.TryLock() {
		return fmt.Errorf("rows per period: %w", ErrBusy)
	}
	defer p.rowing.Unlock()
	reader, err := p.beginRows()
	if err != nil {
		return err
	}
	defer reader.Close()
	defer p.setRows(0)

	begin := time.Now()
	s := inherited{p: p, last: map[uint64]lastRow{}}
	for next := time.NewTimer(rowLength); ; {
		select {
		case <-ctx.Done():
			next.Stop()
			return nil
		case <-next.C:
		}
		s.round = int(time.Since(begin) / rowLength)
		wait := rowsEvery
		p.measure(WorkRows, func() { wait, err = s.pass(reader, each) })
		if err != nil {
			return err
		}
		next.Reset(wait)
	}
}

// pass passes the rows since the last call, and returns how long to wait for the next call.
func (s *inherited) pass(reader *ringbuf.Reader, each func(PeriodRow) error) (time.Duration, error) {
	own, err := s.p.fetchRows(reader, s.own)
	if err != nil {
		return 0, err
	}
	made, active := s.rows()
	for _, r := range append(own, made...) {
		if err := each(r); err != nil {
			return 0, err
		}
	}
	if active || len(own) > manyRows {
		return rowLength, nil
	}
	return rowsEvery, nil
}

func (p *Probe) beginRows() (*ringbuf.Reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	reader, err := ringbuf.NewReader(p.coll.Maps[bpfMapRows])
	if err != nil {
		return nil, refused("read rows per period", err)
	}
	return reader, p.coll.Variables[bpfVarRowsOn].Set(uint32(1))
}

func (p *Probe) setRows(on uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		_ = p.coll.Variables[bpfVarRowsOn].Set(on) // a write to mapped memory
	}
}

// fetchRows empties the ring of rows and reports which containers had one of their own.
func (p *Probe) fetchRows(reader *ringbuf.Reader, own func(id uint64)) ([]PeriodRow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	var lost uint64
	if err := p.coll.Variables[bpfVarRowsLost].Get(&lost); err != nil {
		return nil, err
	}
	isLost := lost != p.rowsLost
	var rows []PeriodRow
	var raw ringbuf.Record
	past := time.Unix(1, 0)
	for {
		reader.SetDeadline(past)
		err := reader.ReadInto(&raw)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return rows, nil
		}
		if err != nil {
			return rows, fmt.Errorf("read rows per period: %w", err)
		}
		if len(raw.RawSample) < int(unsafe.Sizeof(bpfRow{})) {
			continue
		}
		r := *(*bpfRow)(unsafe.Pointer(&raw.RawSample[0]))
		s := p.slotOf(r.Handle)
		if s == nil || !s.counting || r.Length == 0 {
			continue
		}
		own(s.ID)
		rows = append(rows, PeriodRow{
			Cgroup: s.ID, EndNS: r.At, LengthNS: r.Length,
			MeanWidth: float64(r.Integral) / float64(r.Length), MostWidth: int(r.Most),
			StoppedShare: min(float64(r.Stopped)/float64(r.Length), 1), Throttled: r.Throttled != 0, Lost: isLost,
		})
		isLost, p.rowsLost = false, lost
	}
}

// slotOf returns the slot of a handle, nil if the container is not watched now.
func (p *Probe) slotOf(handle uint64) *slot {
	i := int(uint32(handle)) - 1
	if i < 0 || i >= len(p.slots.byNumber) {
		return nil
	}
	if s := p.slots.byNumber[i]; s != nil && s.handle == handle {
		return s
	}
	return nil
}

// inherited makes the rows of containers without a quota that an ancestor's quota stops.
type inherited struct {
	p     *Probe
	round int // units of rowLength since the begin
	last  map[uint64]lastRow
}

type lastRow struct {
	counts  Counts
	has     bool
	ownAt   int    // round of the last row of its own quota
	stopped int    // last round in which it was stopped
	seen    uint64 // its stopped time at the last look, in ns
	looked  bool
	at      int // round of the last look
}

func (s *inherited) own(id uint64) {
	l := s.last[id]
	l.ownAt, l.has, l.looked = s.round, false, false
	s.last[id] = l
}

// rows makes the rows, and reports whether a container has them now.
func (s *inherited) rows() (rows []PeriodRow, any bool) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for id := range s.last {
		if s.p.slots.byID[id] == nil {
			delete(s.last, id)
		}
	}
	if s.p.closed {
		return nil, false
	}
	for id, slot := range s.p.slots.byID {
		l, known := s.last[id]
		ownQuota := known && l.ownAt > 0 && s.round-l.ownAt < rememberStopped
		active := known && l.stopped > 0 && s.round-l.stopped < rememberStopped
		if ownQuota || !slot.counting || !active && known && s.round-l.at < inheritedEvery {
			continue
		}
		l.at = s.round
		if !active {
			if stops, err := s.stops(slot, &l); err != nil || !stops {
				s.last[id] = l
				continue
			}
			l.stopped, l.has = s.round, false
		}
		any = true
		var now Counts
		if err := s.p.readInto(slot, &now, false); err != nil || now.StoppedNS == nil {
			continue
		}
		if l.has {
			rows = append(rows, rowBetween(id, l.counts, now))
			if *now.StoppedNS > *l.counts.StoppedNS {
				l.stopped = s.round
			}
		}
		l.counts, l.has = now, true
		l.seen, l.looked = s.p.reading.container.Stopped[1], true
		s.last[id] = l
	}
	return rows, any
}

// stops looks with one look-up whether a quota holds a container back, or has done so since the last look.
func (s *inherited) stops(slot *slot, l *lastRow) (bool, error) {
	c := &s.p.reading.container
	if err := s.p.coll.Maps[bpfMapContainers].Lookup(slot.number, c); err != nil {
		return false, err
	}
	queues := withOwed(c.StoppedWord, c.StoppedOwed) & wordCount
	stops := l.looked && (queues > 0 || c.Stopped[1] > l.seen)
	l.seen, l.looked = c.Stopped[1], true
	return stops, nil
}

// rowBetween makes the row between two readings.
func rowBetween(id uint64, was, is Counts) PeriodRow {
	r := PeriodRow{Cgroup: id, EndNS: is.AtNS, LengthNS: max(is.AtNS-was.AtNS, 1)}
	for i, ns := range gained(is.WidthNS, was.WidthNS) {
		r.MeanWidth += float64(i) * float64(ns)
		if ns > 0 {
			r.MostWidth = i
		}
	}
	r.MeanWidth /= float64(r.LengthNS)
	r.StoppedShare = min(float64(*is.StoppedNS-*was.StoppedNS)/float64(r.LengthNS), 1)
	r.Throttled = r.StoppedShare > 0
	return r
}
