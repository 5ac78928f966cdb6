package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
)

// event is a record of the kernel's, with the parts that only some kinds have.
type event struct {
	bpfRecord
	more uint64 // RECORD_SWITCH, RECORD_WAKEUP and RECORD_HOLD: the throttling cgroup; RECORD_EXIT: kernel time; RECORD_RECEIVE: since
	// when the data was there
	thread   *bpfRecordThread
	period   *bpfRecordPeriod
	datagram *bpfRecordDatagram
}

// decode reads one record; ok is false for anything else.
func decode(raw []byte) (e event, ok bool) {
	if len(raw) < int(unsafe.Sizeof(bpfRecord{})) {
		return e, false
	}
	e.bpfRecord = *(*bpfRecord)(unsafe.Pointer(&raw[0]))
	switch bpfRecordKind(e.Kind) {
	case bpfRecordKindRECORD_THREAD, bpfRecordKindRECORD_PROCESS:
		if ok = len(raw) >= int(unsafe.Sizeof(bpfRecordThread{})); ok {
			t := *(*bpfRecordThread)(unsafe.Pointer(&raw[0]))
			e.thread = &t
		}
	case bpfRecordKindRECORD_PERIOD:
		if ok = len(raw) >= int(unsafe.Sizeof(bpfRecordPeriod{})); ok {
			p := *(*bpfRecordPeriod)(unsafe.Pointer(&raw[0]))
			e.period = &p
		}
	case bpfRecordKindRECORD_DATAGRAM_READ, bpfRecordKindRECORD_DATAGRAM_SENT:
		if ok = len(raw) >= int(unsafe.Sizeof(bpfRecordDatagram{})); ok {
			d := *(*bpfRecordDatagram)(unsafe.Pointer(&raw[0]))
			e.datagram = &d
		}
	default:
		ok = true
		if len(raw) >= int(unsafe.Sizeof(bpfRecordMore{})) {
			e.more = (*bpfRecordMore)(unsafe.Pointer(&raw[0])).C
		}
	}
	return e, ok
}

// comm converts the kernel's name of a thread.
func comm(raw [16]int8) string {
	b := make([]byte, 0, len(raw))
	for _, c := range raw {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return string(b)
}

const (
	// drainEvery is how often the ring is emptied while many events come, and drainRarely while few do: each wake-up
	// costs more than many events. Few fill less than fewShare of the ring in drainEvery, so that the ring has room for
	// ten times as many in drainRarely. The kernel never wakes its reader, because the recording would show that.
	drainEvery, drainRarely = 10 * time.Millisecond, 50 * time.Millisecond
	fewShare                = 1.0 / 64
	// A batch is one hand-over to the converter. So many batches wait for it before the ring fills up and events are
	// lost.
	batchEvents, batchesWaiting = 4096, 64
)

// ring is the buffer of one recording.
type ring struct {
	buffer *ebpf.Map
	reader ringReader
}

// ringReader reads a ring; *ringbuf.Reader is one.
type ringReader interface {
	ReadInto(*ringbuf.Record) error
	SetDeadline(time.Time)
	AvailableBytes() int
	BufferSize() int
	Close() error
}

// recordHeaderBytes is what the kernel puts before each record of a ring.
const recordHeaderBytes = 8

func (p *Probe) newRing() (*ring, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "ring", Type: ebpf.RingBuf, MaxEntries: uint32(p.options.RingBytes)})
	if err != nil {
		return nil, refused(fmt.Sprintf("give %d bytes for a recording's ring", p.options.RingBytes), err)
	}
	r, err := ringbuf.NewReader(m)
	if err == nil {
		if err = p.coll.Maps[bpfMapRings].Put(uint32(0), m); err == nil {
			return &ring{m, r}, nil
		}
		r.Close()
	}
	m.Close()
	return nil, refused("use a recording's ring", err)
}

func (p *Probe) endRing(r *ring) error {
	return errors.Join(p.coll.Maps[bpfMapRings].Delete(uint32(0)), r.reader.Close(), r.buffer.Close())
}

// drain empties the ring into batches until ctx ends, and then once more. Every pass ends with a time. Before that
// time the ring has nothing left except records that a CPU was about to write. A pass reads no more than the ring can have
// held at that time: where events come as fast as they are read, the ring is never empty, and without that bound their
// order was never settled and all of them stayed in memory.
func (r *ring) drain(ctx context.Context, out chan<- batch) error {
	defer close(out)
	var raw ringbuf.Record
	next := time.NewTimer(drainEvery)
	defer next.Stop()
	past := time.Unix(1, 0)
	wait := drainEvery
	for last := false; ; {
		b := batch{upTo: monotonic()}
		wait = r.pause(wait)
		for read := 0; read < r.reader.BufferSize(); {
			r.reader.SetDeadline(past)
			err := r.reader.ReadInto(&raw)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return fmt.Errorf("read the recording's ring: %w", err)
			}
			read += recordHeaderBytes + len(raw.RawSample)
			if e, ok := decode(raw.RawSample); ok {
				b.events = append(b.events, e)
			}
			if len(b.events) == batchEvents {
				out <- b
				b = batch{upTo: b.upTo}
			}
		}
		b.complete = true
		out <- b
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			last = true
		case <-next.C:
			next.Reset(wait)
		}
	}
}

// pause returns how long to wait after the ring is emptied now, some time after it was emptied last.
func (r *ring) pause(waited time.Duration) time.Duration {
	few := fewShare * float64(r.reader.BufferSize()) * waited.Seconds() / drainEvery.Seconds()
	if float64(r.reader.AvailableBytes()) < few {
		return drainRarely
	}
	return drainEvery
}

// batch has events as they were in the ring: nearly in the order of time.
type batch struct {
	events []event
	// complete reports that all that was in the ring at upTo has been handed over.
	complete bool
	upTo     uint64
}
