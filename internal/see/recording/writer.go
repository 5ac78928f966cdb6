package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Writer writes a recording as its events come: the header first, events in chunks of some thousand, the footer at the
// end. If its process dies, the file is readable up to the last whole chunk. It is not safe for concurrent use.
type Writer struct {
	p      *packer
	chunk  []byte
	last   int64
	begun  bool // the chunk has an event
	closed bool
	err    error
}

// ErrClosed reports a Write after Close.
var ErrClosed = errors.New("recording: write after close")

// NewWriter writes a header to w, always as version [Version]. The caller closes w.
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

// Write adds an event and cuts its Text at [MaxText]. An error is that of the underlying writer, such as a full disk,
// and every later call repeats it.
func (w *Writer) Write(e *Event) error {
	switch {
	case w.closed:
		return ErrClosed
	case w.err != nil:
		return w.err
	}
	if !w.begun {
		// A chunk has its first time in full, so that it is readable without those before it.
		w.last, w.begun = 0, true
	}
	w.chunk = appendEvent(w.chunk, e, w.last)
	w.last = e.AtNS
	if len(w.chunk) >= packedTo {
		return w.Flush()
	}
	return nil
}

// Flush writes the events that wait for a full chunk.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.chunk) == 0 {
		return w.err
	}
	w.err = w.p.block(eventBlock, w.chunk)
	w.chunk, w.begun = w.chunk[:0], false
	return w.err
}

// Close writes the remaining events and the footer.
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
