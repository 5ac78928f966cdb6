package probe

import (
	"context"
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
)

// busyRing is a ring that gets records as fast as they are read, until so many are.
type busyRing struct{ left int }

const busyRingBytes = 1 << 12

func (*busyRing) SetDeadline(time.Time) {}
func (*busyRing) AvailableBytes() int   { return busyRingBytes }
func (*busyRing) BufferSize() int       { return busyRingBytes }
func (*busyRing) Close() error          { return nil }

func (b *busyRing) ReadInto(into *ringbuf.Record) error {
	if b.left == 0 {
		return os.ErrDeadlineExceeded
	}
	b.left--
	into.RawSample = make([]byte, unsafe.Sizeof(bpfRecord{}))
	return nil
}

// A ring that is never seen empty ends its passes all the same, so that the events of each can be passed on.
func TestDrainOfARingThatIsNeverEmpty(t *testing.T) {
	size := recordHeaderBytes + int(unsafe.Sizeof(bpfRecord{}))
	const rings = 10
	r := &ring{reader: &busyRing{left: rings * busyRingBytes / size}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, drained := make(chan batch), make(chan error, 1)
	go func() { drained <- r.drain(ctx, out) }()
	pass, passes := 0, 0
	for b := range out {
		if pass += len(b.events); pass > busyRingBytes/size+1 {
			t.Fatalf("a pass has read %d records, of a ring that holds %d", pass, busyRingBytes/size)
		}
		if b.complete {
			pass = 0
			if passes++; passes == rings/2 {
				cancel()
			}
		}
	}
	if err := <-drained; err != nil || passes < rings/2 {
		t.Errorf("%d passes, %v", passes, err)
	}
}
