package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrNotARecording reports input that does not begin as a recording.
var ErrNotARecording = errors.New("not a recording of unthrottle")

// VersionError reports a recording of a newer format.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("recording: written in version %d of the format, and this unthrottle reads up to %d: use a "+
		"newer one", e.Version, Version)
}

// Reader reads a recording event by event, with one chunk in memory at a time. It is not safe for concurrent use.
type Reader struct {
	Header Header

	u         unpacker
	chunk     source
	last      int64
	footer    Footer
	done      error // io.EOF or the error that ended it
	truncated bool
}

// NewReader reads the header. Its errors are [ErrNotARecording], *[VersionError], [ErrDamaged], an input that ends
// within its header, and those of r.
func NewReader(r io.Reader) (*Reader, error) {
	var head [len(magic) + 2]byte
	switch n, err := io.ReadFull(r, head[:]); {
	case n >= len(magic) && string(head[:len(magic)]) != magic, err != nil && n < len(magic) && magic[:n] != string(head[:n]):
		return nil, fmt.Errorf("recording: %w: it does not begin with a recording's first bytes", ErrNotARecording)
	case n == 0 && errors.Is(err, io.EOF):
		return nil, fmt.Errorf("recording: %w: it is empty", ErrNotARecording)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errHeaderCut
	case err != nil:
		return nil, fmt.Errorf("recording: read: %w", err)
	}
	switch v := int(binary.LittleEndian.Uint16(head[len(magic):])); {
	case v > Version:
		return nil, &VersionError{v}
	case v == 0:
		return nil, fmt.Errorf("recording: %w: version 0", ErrDamaged)
	}
	rd := &Reader{u: unpacker{r: r}}
	for {
		kind, raw, err := rd.u.block()
		switch {
		case errors.Is(err, errCut):
			return nil, errHeaderCut
		case err != nil:
			return nil, fmt.Errorf("recording: %w", err)
		case optional(kind):
			continue
		case kind != headerBlock:
			return nil, fmt.Errorf("recording: %w: a block of kind %q comes before the header", ErrDamaged, kind)
		}
		if rd.Header, err = decodeHeader(raw); err != nil {
			return nil, fmt.Errorf("recording: %w: %v", ErrDamaged, err)
		}
		return rd, nil
	}
}

var errHeaderCut = errors.New("recording: cut off within its header: no event is readable")

// optional reports whether readers may skip a block of this kind.
func optional(kind byte) bool { return kind >= 'a' && kind <= 'z' }

// Next reads the next event. io.EOF means the end; Footer and Truncated then say how it ended. Other errors are
// [ErrDamaged] and those of the input; earlier events are valid.
func (r *Reader) Next(e *Event) error {
	for r.done == nil && len(r.chunk.b) == 0 {
		r.done = r.nextChunk()
	}
	if r.done != nil {
		return r.done
	}
	if err := r.chunk.readEvent(e, r.last); err != nil {
		r.done = fmt.Errorf("recording: %w: %v", ErrDamaged, err)
		return r.done
	}
	r.last = e.AtNS
	return nil
}

// nextChunk reads the next block of events, or returns what ended the recording.
func (r *Reader) nextChunk() error {
	kind, raw, err := r.u.block()
	switch {
	case errors.Is(err, errCut):
		r.truncated = true
		r.footer = Footer{EndNS: r.last}
		return io.EOF
	case err != nil:
		return fmt.Errorf("recording: %w", err)
	case kind == eventBlock:
		r.chunk = source{b: raw}
		if len(raw) > 0 {
			r.last = 0
		}
		return nil
	case optional(kind):
		return nil
	case kind != footerBlock:
		return fmt.Errorf("recording: %w: a block of kind %q", ErrDamaged, kind)
	}
	if r.footer, err = decodeFooter(raw); err != nil {
		return fmt.Errorf("recording: %w: %v", ErrDamaged, err)
	}
	return io.EOF
}

// Footer returns the recording's footer after Next returned io.EOF. After a cut it has only EndNS, the time of the last
// event.
func (r *Reader) Footer() Footer { return r.footer }

// Truncated reports, after Next returned io.EOF, that the recording was cut off.
func (r *Reader) Truncated() bool { return r.truncated }

// Read reads a whole recording into memory; see [Reader] for one event at a time. After damage beyond the header it
// returns the events before, marked as Truncated, with the error.
func Read(from io.Reader) (Recording, error) {
	r, err := NewReader(from)
	if err != nil {
		return Recording{}, err
	}
	rec := Recording{Header: r.Header}
	for {
		var e Event
		switch err := r.Next(&e); {
		case err == io.EOF:
			rec.Footer, rec.Truncated = r.Footer(), r.Truncated()
			return rec, nil
		case err != nil:
			rec.Footer, rec.Truncated = Footer{EndNS: r.last}, true
			return rec, err
		}
		rec.Events = append(rec.Events, e)
	}
}
