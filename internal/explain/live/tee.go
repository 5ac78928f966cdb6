package live

import (
	"bytes"
	"errors"
	"io"
)

// maxCopy bounds the copy of a recording in memory, in bytes. A second of a busy container takes some 100 kB.
const maxCopy = 64 << 20

// tee copies a recording into memory, to read it a second time, and passes it on.
type tee struct {
	keep   io.Writer // nil: it is not kept
	failed error     // of keep, which then gets no more
	memory bytes.Buffer
	full   bool // the recording is larger than maxCopy: memory has nothing
}

var errNoRoom = errors.New("the recording is too large to copy")

// Write fails only if neither place takes more.
func (t *tee) Write(b []byte) (int, error) {
	if t.keep != nil && t.failed == nil {
		_, t.failed = t.keep.Write(b)
	}
	if !t.full && t.memory.Len()+len(b) > maxCopy {
		t.full, t.memory = true, bytes.Buffer{}
	}
	if !t.full {
		t.memory.Write(b)
	}
	if t.full && (t.keep == nil || t.failed != nil) {
		return 0, errNoRoom
	}
	return len(b), nil
}
