package recording_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/topology"
)

const ms = time.Millisecond

// example has every kind of event and every field.
func example() recording.Recording {
	s := rt.New(4).Limit(50*ms, 100*ms).Process("java")
	w := s.Threads("http-worker", 6)
	s.Repeat(4, 100*ms, func(at time.Duration) { s.Work(at, 12*ms, w...) })
	n := s.Neighbour("batch/etl", "/batch/etl", new(uint64(10)), new(uint64(3)))
	s.Occupy(20*ms, 60*ms, 1, n)
	h := s.Header()
	h.Host.SliceNS = new(int64(5_000_000))
	h.SubLevels = []recording.Level{{Path: "/parent/container/below", ID: 110, PeriodNS: 1, Weight: 50}}
	h.Threads[0].Comm = "\xff\xfe not text"
	h.Threads[1].Comm = "base64:AAAA"
	h.Threads[2].Allowed, h.Threads[2].Nice = "0-1", -5
	h.Processes = []recording.Process{{TGID: 1100, Comm: "ja\xfe", Exe: "/usr/bin/java", Cmdline: []string{"java", "\xff"},
		Libraries: []string{"/lib/\x80.so"}, Go: "go1.2\xff", Holds: []string{"rayon\xff"}}}
	h.NotMeasured = []string{"topology: no /sys"}
	s.Add(
		recording.Event{AtNS: 5, Kind: recording.Name, Thread: 1101, TGID: 1100, Text: "new\xff", Cgroup: 100},
		recording.Event{AtNS: 6, Kind: recording.Enter, Thread: 1300, TGID: 1300, Text: "bash", Cgroup: 100},
		recording.Event{AtNS: 7, Kind: recording.Wakeup, Thread: 1300, CPU: 3, Waker: 1101, Flags: recording.New},
		recording.Event{AtNS: 8, Kind: recording.Migrate, Thread: 1300, CPU: -1},
		recording.Event{AtNS: 9, Kind: recording.Lost, CPU: 2, Count: math.MaxUint64},
		recording.Event{AtNS: 10, Kind: recording.Leave, Thread: 1300, Cgroup: math.MaxUint64},
		recording.Event{AtNS: 10, Kind: recording.Receive, Thread: 1101, Socket: math.MaxUint32, Count: 12345},
		recording.Event{AtNS: 10, Kind: recording.Send, Thread: 1101, Socket: 1},
		recording.Event{AtNS: 11, Kind: recording.Exit, Thread: math.MaxUint32, Owner: 7, CPU: math.MaxInt32},
	)
	r := s.Run(400 * ms)
	r.Footer.Threads = []recording.ThreadTime{{TID: 1101, UserNS: 5, KernelNS: 6}}
	r.Footer.ThrottledNS = new(int64(7))
	r.Footer.Neighbours[0].Name = "\xfe"
	r.Footer.Processes = []recording.Process{{TGID: 1300, Comm: "ba\xfe", Cmdline: []string{"postgres: parallel worker for PID 7\xff"}}}
	return r
}

func written(t testing.TB, r recording.Recording) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var asWritten = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(x, y cpuset.CPUSet) bool { return x.Equals(y) }),
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	want := example()
	got, err := recording.Read(bytes.NewReader(written(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, asWritten); diff != "" {
		t.Error(diff)
	}
}

func TestTheMachineIsKept(t *testing.T) {
	r := example()
	r.Header.Host.Machine = &topology.Machine{CPUs: []topology.CPU{{ID: 3}}}
	got, err := recording.Read(bytes.NewReader(written(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.Host.Machine == nil || len(got.Header.Host.Machine.CPUs) != 1 || got.Header.Host.Machine.CPUs[0].ID != 3 {
		t.Errorf("machine: %+v", got.Header.Host.Machine)
	}
}

func TestAnyEventIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOf(rapid.Make[recording.Event]()).Draw(t, "events")
		for i := range events {
			events[i].Text = events[i].Text[:min(len(events[i].Text), recording.MaxText)]
		}
		var b bytes.Buffer
		w, err := recording.NewWriter(&b, recording.Header{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			if err := w.Write(&events[i]); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "flush") {
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(recording.Footer{}); err != nil {
			t.Fatal(err)
		}
		r, err := recording.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(events, r.Events, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A recording that is cut off after its header gives the events of all whole chunks, in order.
func TestCutOffAnywhere(t *testing.T) {
	want := example()
	want.Events = want.Events[:120]
	var b bytes.Buffer
	w, err := recording.NewWriter(&b, want.Header)
	if err != nil {
		t.Fatal(err)
	}
	head := b.Len()
	ends := map[int]int{head: 0} // size -> number of whole events
	for i := range want.Events {
		if err := w.Write(&want.Events[i]); err != nil {
			t.Fatal(err)
		}
		if i%7 == 6 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			ends[b.Len()] = i + 1
		}
	}
	if err := w.Close(want.Footer); err != nil {
		t.Fatal(err)
	}
	whole := 0
	for n := range b.Len() {
		if e, ok := ends[n]; ok {
			whole = e
		}
		r, err := recording.Read(bytes.NewReader(b.Bytes()[:n]))
		if n < head {
			if err == nil {
				t.Fatalf("%d bytes, less than the header, were read", n)
			}
			continue
		}
		if err != nil || !r.Truncated {
			t.Fatalf("%d bytes: %v, truncated %v", n, err, r.Truncated)
		}
		if len(r.Events) < whole {
			t.Fatalf("%d bytes: %d events of %d", n, len(r.Events), whole)
		}
		if !slices.Equal(want.Events[:len(r.Events)], r.Events) {
			t.Fatalf("%d bytes: other events", n)
		}
		if k := len(r.Events); k > 0 && r.Footer.EndNS != r.Events[k-1].AtNS {
			t.Fatalf("%d bytes: ends at %d", n, r.Footer.EndNS)
		}
	}
}

// A changed byte is noticed at any place, and the events before it are readable.
func TestDamage(t *testing.T) {
	want := example()
	good := written(t, want)
	for i := 10; i < len(good); i += 3 {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		r, err := recording.Read(bytes.NewReader(bad))
		// A larger length looks like a file that was cut off.
		if err == nil && !r.Truncated {
			t.Fatalf("byte %d changed without an error", i)
		}
		if len(r.Events) > 0 && !slices.Equal(want.Events[:len(r.Events)], r.Events) {
			t.Fatalf("byte %d: other events", i)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	good := written(t, example())
	newer := bytes.Clone(good)
	newer[8] = recording.Version + 1
	unknown := bytes.Clone(good)
	unknown[10] = 'X'
	for name, c := range map[string]struct {
		input string
		is    error
		says  string
	}{
		"nothing":       {"", recording.ErrNotARecording, "empty"},
		"text":          {"hello, world, hello", recording.ErrNotARecording, "first bytes"},
		"short text":    {"hi", recording.ErrNotARecording, "first bytes"},
		"a newer one":   {string(newer), nil, "version 2 of the format, and this unthrottle reads up to 1"},
		"a short mark":  {string(good[:5]), nil, "cut off within its header"},
		"half a header": {string(good[:40]), nil, "cut off within its header"},
		"another block": {string(unknown), recording.ErrDamaged, "damaged"},
	} {
		_, err := recording.Read(strings.NewReader(c.input))
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var v *recording.VersionError
	if _, err := recording.Read(bytes.NewReader(newer)); !errors.As(err, &v) || v.Version != recording.Version+1 {
		t.Errorf("%v", err)
	}
}

type failing struct{ left int }

var errFull = errors.New("no space left on device")

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestAFullDisk(t *testing.T) {
	r := example()
	whole := len(written(t, r))
	for _, room := range []int{0, 12, whole / 2, whole - 1} {
		if err := r.Write(&failing{room}); !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
	w, err := recording.NewWriter(&failing{whole * 2 / 3}, r.Header)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(&r.Events[0]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(r.Footer); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if err := w.Write(&r.Events[0]); !errors.Is(err, recording.ErrClosed) {
		t.Error(err)
	}
	if err := w.Close(r.Footer); !errors.Is(err, recording.ErrClosed) {
		t.Error(err)
	}
}

// A reader takes memory as bytes arrive, not as lengths claim.
func TestBoundedMemory(t *testing.T) {
	good := written(t, example())
	liar := bytes.Clone(good[:10+13])
	copy(liar[11:], []byte{0, 0, 0, 1, 0, 0, 0, 1}) // 16 MiB packed and unpacked
	allocated := testing.AllocsPerRun(1, func() {
		if _, err := recording.Read(bytes.NewReader(liar)); err == nil {
			t.Error("read")
		}
	})
	if allocated > 100 {
		t.Errorf("%v allocations", allocated)
	}
}

// A reader skips optional blocks that it does not know.
func TestUnknownBlocksAreSkipped(t *testing.T) {
	want := example()
	good := written(t, want)
	extended := append(bytes.Clone(good[:10]), recording.OptionalBlock('x', []byte("later"))...)
	extended = append(extended, good[10:]...)
	got, err := recording.Read(bytes.NewReader(extended))
	if err != nil || len(got.Events) != len(want.Events) {
		t.Errorf("%d events, %v", len(got.Events), err)
	}
}

func FuzzRead(f *testing.F) {
	good := written(f, example())
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("\x89UTR\r\n\x1a\n\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := recording.NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		var e recording.Event
		for {
			if err := r.Next(&e); err != nil {
				if err == io.EOF || errors.Is(err, recording.ErrDamaged) {
					return
				}
				t.Fatal(err)
			}
		}
	})
}

// FuzzEvents starts after the checksums, which random bytes hardly pass.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{1, 0, 2, 3, 1, 4, 1})
	f.Add(recording.EncodeEvents([]recording.Event{
		{AtNS: 9, Kind: recording.Receive, Thread: 7, Socket: 1, Count: 5}, {AtNS: 12, Kind: recording.Send, Thread: 8, Socket: 1},
	}))
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := recording.DecodeEvents(b)
		if err != nil {
			return
		}
		again, err := recording.DecodeEvents(recording.EncodeEvents(events))
		if err != nil || !cmp.Equal(events, again, cmpopts.EquateEmpty()) {
			t.Fatalf("%v: %v became %v", err, events, again)
		}
	})
}
