package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrNotARecording is input that does not begin as one.
var ErrNotARecording = errors.New("this is no recording of unthrottle")

// VersionError is a recording of a newer format.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("recording: written in version %d of the format, and this unthrottle reads up to %d: use a newer one", e.Version, Version)
}

// Reader reads a recording event by event, with one chunk of it in memory at a time. Not safe for use by several
// goroutines at once.
type Reader struct {
	Header Header

	u         unpacker
	chunk     source
	last      int64
	footer    Footer
	done      error // io.EOF or what ended it
	truncated bool
}

// NewReader reads the header. Errors are [ErrNotARecording], *[VersionError], [ErrDamaged], an input that ends within
// its header, and those of r.
func NewReader(r io.Reader) (*Reader, error) {
	var head [len(magic) + 2]byte
	switch n, err := io.ReadFull(r, head[:]); {
	case n >= len(magic) && string(head[:len(magic)]) != magic, err != nil && n < len(magic) && magic[:n] != string(head[:n]):
		return nil, fmt.Errorf("recording: %w: it does not begin with one's mark", ErrNotARecording)
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

var errHeaderCut = errors.New("recording: cut off within its header: nothing of it can be read")

// optional blocks are for readers that know them.
func optional(kind byte) bool { return kind >= 'a' && kind <= 'z' }

// Next reads the next event. io.EOF: there is no more, and Footer and Truncated say how it ended. Other errors are
// [ErrDamaged] and those of the input; what came before is good.
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

// nextChunk goes on to the next block of events, or gives what ended the recording.
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

// Footer is the recording's footer once Next gave io.EOF. Of one that was cut off it has only EndNS, the time of the
// last event.
func (r *Reader) Footer() Footer { return r.footer }

// Truncated says, once Next gave io.EOF, that the recording was cut off.
func (r *Reader) Truncated() bool { return r.truncated }

// Read reads a whole recording into memory; see [Reader] for one event at a time. With an error other than that of the
// beginning it gives what could be read before, marked as Truncated.
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
