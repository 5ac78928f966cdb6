package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxText bounds Event.Text in bytes: a comm has 15, a container's name at most some hundred.
const MaxText = 4096

// Fields of an event after its kind and time, as bits of the mask of non-zero fields, in the order in which they are
// written. The order is the format: append new fields at the end.
const (
	hasFlags = 1 << iota
	hasCPU
	hasThread
	hasNextThread
	hasOwner
	hasNextOwner
	hasWaker
	hasTGID
	hasCgroup
	hasCount
	hasOwnerKind
	hasText
	hasPeriod
	hasSocket

	knownFields = 1<<iota - 1
)

func (e *Event) mask() uint64 {
	m := uint64(0)
	set := func(on bool, bit uint64) {
		if on {
			m |= bit
		}
	}
	set(e.Flags != 0, hasFlags)
	set(e.CPU != 0, hasCPU)
	set(e.Thread != 0, hasThread)
	set(e.NextThread != 0, hasNextThread)
	set(e.Owner != 0, hasOwner)
	set(e.NextOwner != 0, hasNextOwner)
	set(e.Waker != 0, hasWaker)
	set(e.TGID != 0, hasTGID)
	set(e.Cgroup != 0, hasCgroup)
	set(e.Count != 0, hasCount)
	set(e.OwnerKind != 0, hasOwnerKind)
	set(e.Text != "", hasText)
	set(e.Period != PeriodState{}, hasPeriod)
	set(e.Socket != 0, hasSocket)
	return m
}

// appendEvent writes an event that follows one at time last.
func appendEvent(b []byte, e *Event, last int64) []byte {
	m := e.mask()
	b = append(b, byte(e.Kind))
	b = binary.AppendUvarint(b, m)
	b = binary.AppendVarint(b, e.AtNS-last)
	if m&hasFlags != 0 {
		b = append(b, byte(e.Flags))
	}
	if m&hasCPU != 0 {
		b = binary.AppendVarint(b, int64(e.CPU))
	}
	for _, f := range [...]struct {
		bit, value uint64
	}{
		{hasThread, uint64(e.Thread)}, {hasNextThread, uint64(e.NextThread)}, {hasOwner, uint64(e.Owner)},
		{hasNextOwner, uint64(e.NextOwner)}, {hasWaker, uint64(e.Waker)}, {hasTGID, uint64(e.TGID)},
		{hasCgroup, e.Cgroup}, {hasCount, e.Count},
	} {
		if m&f.bit != 0 {
			b = binary.AppendUvarint(b, f.value)
		}
	}
	if m&hasOwnerKind != 0 {
		b = append(b, byte(e.OwnerKind))
	}
	if m&hasText != 0 {
		text := e.Text[:min(len(e.Text), MaxText)]
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	if m&hasPeriod != 0 {
		p := &e.Period
		b = binary.AppendVarint(b, p.QuotaNS)
		b = binary.AppendVarint(b, p.LeftNS)
		b = binary.AppendVarint(b, p.BurstNS)
		b = binary.AppendUvarint(b, uint64(p.Periods))
		b = binary.AppendUvarint(b, uint64(p.Throttled))
		b = binary.AppendUvarint(b, uint64(p.StoppedCPUs))
	}
	if m&hasSocket != 0 {
		b = binary.AppendUvarint(b, uint64(e.Socket))
	}
	return b
}

var errShort = errors.New("an event ends after the end of its chunk")

// source reads the parts of events from a chunk. After an error it returns zeros.
type source struct {
	b   []byte
	err error
}

func (s *source) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.b = nil
}

func (s *source) byte() byte {
	if len(s.b) == 0 {
		s.fail(errShort)
		return 0
	}
	c := s.b[0]
	s.b = s.b[1:]
	return c
}

func (s *source) uvarint() uint64 {
	v, n := binary.Uvarint(s.b)
	if n <= 0 {
		s.fail(errShort)
		return 0
	}
	s.b = s.b[n:]
	return v
}

func (s *source) varint() int64 {
	v, n := binary.Varint(s.b)
	if n <= 0 {
		s.fail(errShort)
		return 0
	}
	s.b = s.b[n:]
	return v
}

// uint32 refuses larger numbers.
func (s *source) uint32() uint32 {
	v := s.uvarint()
	if v > 1<<32-1 {
		s.fail(fmt.Errorf("%d in a field of 32 bits", v))
		return 0
	}
	return uint32(v)
}

func (s *source) int32() int32 {
	v := s.varint()
	if int64(int32(v)) != v {
		s.fail(fmt.Errorf("%d in a field of 32 bits", v))
		return 0
	}
	return int32(v)
}

// readEvent reads the event that follows one at time last.
func (s *source) readEvent(e *Event, last int64) error {
	kind := Kind(s.byte())
	m := s.uvarint()
	*e = Event{Kind: kind, AtNS: last + s.varint()}
	if m&^knownFields != 0 {
		s.fail(fmt.Errorf("an event has fields that version %d does not have", Version))
	}
	if m&hasFlags != 0 {
		e.Flags = Flags(s.byte())
	}
	if m&hasCPU != 0 {
		e.CPU = s.int32()
	}
	for _, f := range [...]struct {
		bit   uint64
		value *uint32
	}{
		{hasThread, &e.Thread}, {hasNextThread, &e.NextThread}, {hasOwner, &e.Owner}, {hasNextOwner, &e.NextOwner},
		{hasWaker, &e.Waker}, {hasTGID, &e.TGID},
	} {
		if m&f.bit != 0 {
			*f.value = s.uint32()
		}
	}
	if m&hasCgroup != 0 {
		e.Cgroup = s.uvarint()
	}
	if m&hasCount != 0 {
		e.Count = s.uvarint()
	}
	if m&hasOwnerKind != 0 {
		e.OwnerKind = OwnerKind(s.byte())
	}
	if m&hasText != 0 {
		e.Text = s.text()
	}
	if m&hasPeriod != 0 {
		e.Period = PeriodState{QuotaNS: s.varint(), LeftNS: s.varint(), BurstNS: s.varint()}
		e.Period.Periods, e.Period.Throttled, e.Period.StoppedCPUs = s.uint32(), s.uint32(), s.uint32()
	}
	if m&hasSocket != 0 {
		e.Socket = s.uint32()
	}
	return s.err
}

func (s *source) text() string {
	n := s.uvarint()
	if n > MaxText || n > uint64(len(s.b)) {
		s.fail(errShort)
		return ""
	}
	text := string(s.b[:n])
	s.b = s.b[n:]
	return text
}
