package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Writer writes a recording as its events come: the header at once, events in chunks of some thousand, the footer at the
// end. Whatever was written when its process dies can be read, up to the last whole chunk. Not safe for use by several
// goroutines at once.
type Writer struct {
	p      *packer
	chunk  []byte
	last   int64
	begun  bool // the chunk has an event
	closed bool
	err    error
}

// ErrClosed is a Write after Close.
var ErrClosed = errors.New("recording: written to after it was closed")

// NewWriter writes a header to w, whatever version it says as [Version]. Closing w is the caller's.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	head, err := encodeHeader(&h)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint16([]byte(magic), Version)); err != nil {
		return nil, fmt.Errorf("recording: write: %w", err)
	}
	wr := &Writer{p: newPacker(w)}
	if err := wr.p.block(headerBlock, head); err != nil {
		return nil, err
	}
	return wr, nil
}

// Write adds an event; Text is cut at [MaxText]. An error is that of the underlying writer, a full disk for instance,
// and stays.
func (w *Writer) Write(e *Event) error {
	switch {
	case w.closed:
		return ErrClosed
	case w.err != nil:
		return w.err
	}
	if !w.begun {
		// A chunk tells its first time in full, so that it can be read without those before it.
		w.last, w.begun = 0, true
	}
	w.chunk = appendEvent(w.chunk, e, w.last)
	w.last = e.AtNS
	if len(w.chunk) >= packedTo {
		return w.Flush()
	}
	return nil
}

// Flush writes the events that are held back for a chunk.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.chunk) == 0 {
		return w.err
	}
	w.err = w.p.block(eventBlock, w.chunk)
	w.chunk, w.begun = w.chunk[:0], false
	return w.err
}

// Close writes what is left and the footer.
func (w *Writer) Close(f Footer) error {
	if w.closed {
		return ErrClosed
	}
	w.closed = true
	if err := w.Flush(); err != nil {
		return err
	}
	foot, err := encodeFooter(&f)
	if err != nil {
		return err
	}
	w.err = w.p.block(footerBlock, foot)
	return w.err
}

// Write writes a whole recording.
func (r *Recording) Write(to io.Writer) error {
	w, err := NewWriter(to, r.Header)
	if err != nil {
		return err
	}
	for i := range r.Events {
		if err := w.Write(&r.Events[i]); err != nil {
			return err
		}
	}
	return w.Close(r.Footer)
}
