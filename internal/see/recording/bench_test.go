package recording_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// busy returns the events of a container with 64 threads on 16 CPUs in a second of 100,000 switches. Times are
// irregular, and every switch has a wake-up before it.
func busy(n int) []recording.Event {
	rng := rand.New(rand.NewPCG(1, 2))
	events := make([]recording.Event, 0, n)
	at := int64(0)
	on := make([]uint32, 16)
	for len(events) < n {
		at += 1000 + rng.Int64N(9000)
		cpu := rng.IntN(16)
		next := uint32(2_000_000 + rng.IntN(64))
		events = append(events, recording.Event{AtNS: at, Kind: recording.Wakeup, CPU: int32(cpu), Thread: next, Waker: on[rng.IntN(16)]})
		at += 500 + rng.Int64N(5000)
		e := recording.Event{AtNS: at, Kind: recording.Switch, CPU: int32(cpu), Thread: on[cpu], NextThread: next}
		if rng.IntN(3) == 0 {
			e.Flags = recording.PrevRunnable
		}
		on[cpu] = next
		events = append(events, e)
	}
	return events
}

const benchEvents = 200_000

// BenchmarkWrite compares with BenchmarkFixed: the same events as structures of fixed size, without compression, are
// the floor.
func BenchmarkWrite(b *testing.B) {
	events := busy(benchEvents)
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		w, err := recording.NewWriter(&out, recording.Header{})
		if err != nil {
			b.Fatal(err)
		}
		for i := range events {
			if err := w.Write(&events[i]); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(recording.Footer{}); err != nil {
			b.Fatal(err)
		}
	}
	report(b, out.Len())
}

func BenchmarkRead(b *testing.B) {
	data := written(b, recording.Recording{Events: busy(benchEvents)})
	for b.Loop() {
		r, err := recording.NewReader(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		var e recording.Event
		n := 0
		for ; err == nil; err = r.Next(&e) {
			n++
		}
		if err != io.EOF || n != benchEvents+1 {
			b.Fatal(n, err)
		}
	}
	report(b, len(data))
}

// fixed is an event without its text.
type fixed struct {
	At                                                int64
	Kind, Flags, OwnerKind, Spare                     uint8
	CPU                                               int32
	Thread, NextThread, Owner, NextOwner, Waker, TGID uint32
	Cgroup, Count                                     uint64
}

func BenchmarkFixed(b *testing.B) {
	events := busy(benchEvents)
	var out []byte
	for b.Loop() {
		out = out[:0]
		for i := range events {
			e := &events[i]
			f := fixed{At: e.AtNS, Kind: uint8(e.Kind), Flags: uint8(e.Flags), CPU: e.CPU, Thread: e.Thread, NextThread: e.NextThread,
				Owner: e.Owner, NextOwner: e.NextOwner, Waker: e.Waker, TGID: e.TGID, Cgroup: e.Cgroup, Count: e.Count}
			var err error
			if out, err = binary.Append(out, binary.LittleEndian, &f); err != nil {
				b.Fatal(err)
			}
		}
	}
	report(b, len(out))
}

func report(b *testing.B, size int) {
	b.ReportMetric(float64(size)/benchEvents, "bytes/event")
	b.ReportMetric(benchEvents*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// The format is worth its complexity only if it takes at most half of structures of fixed size.
func TestSmallerThanFixed(t *testing.T) {
	size := len(written(t, recording.Recording{Events: busy(20_000)}))
	if floor := binary.Size(fixed{}) * 20_000; size*4 > floor {
		t.Errorf("%d bytes for 20,000 events: more than a quarter of %d", size, floor)
	}
}
