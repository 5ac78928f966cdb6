package forecast

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// polled has a reader that clients wake, and a worker that nobody wakes: it looks for work after sleeps of random
// lengths, takes what the reader has
// read, and answers. Burners spend the quota.
func polled() recording.Recording {
	const length = 4 * time.Second
	chance := rand.New(rand.NewPCG(3, 4))
	s := rt.New(4).Limit(100*ms, 100*ms).Process("server")
	reader, worker, burners := s.Threads("reader", 1), s.Threads("worker", 1), s.Threads("burner", 2)
	for at := 3 * ms; at < length; at += 8*ms + time.Duration(chance.Int64N(int64(4*ms))) {
		s.Work(at, 100*time.Microsecond, reader...)
	}
	s.Client(s.Outsider("client"), reader...)
	s.Client(recording.Kernel, worker...)
	for at := ms; at < length; at += 300*time.Microsecond + time.Duration(chance.Int64N(int64(900*time.Microsecond))) {
		s.Work(at, 20*time.Microsecond, worker...)
	}
	s.Repeat(int(length/(100*ms)), 100*ms, func(at time.Duration) { s.Work(at+5*ms, 48*ms, burners...) })
	r := s.Run(length)
	var added []recording.Event
	socket, arrived, read, woken := uint32(0), int64(0), int64(-1), int64(0)
	for _, e := range r.Events {
		switch {
		case e.Kind == recording.Wakeup && e.Thread == reader[0]:
			arrived = e.AtNS
		case e.Kind == recording.Wakeup && e.Thread == worker[0]:
			woken = e.AtNS
		case e.Kind == recording.Switch && e.NextThread == reader[0] && arrived > 0 && read < 0:
			socket++
			read = e.AtNS + 5000
			added = append(added, recording.Event{Kind: recording.Receive, Thread: reader[0], CPU: e.CPU,
				Socket: socket, AtNS: read, Count: uint64(read - arrived)})
			arrived = 0
		case e.Kind == recording.Switch && e.NextThread == worker[0] && read >= 0 && woken > read:
			added = append(added, recording.Event{Kind: recording.Send, Thread: worker[0], CPU: e.CPU, Socket: socket,
				AtNS: e.AtNS + 10_000})
			read = -1
		}
	}
	r.Events = append(r.Events, added...)
	slices.SortStableFunc(r.Events, func(a, b recording.Event) int { return int(a.AtNS - b.AtNS) })
	return r
}

// A request that a polling thread finds is answered when it is found, and not when it was found in the recording:
// without stops it is answered at
// once.
func TestPolledRequestsFollowTheirReader(t *testing.T) {
	f, err := Make(loadOf(t, polled()), Options{Seeds: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if f.Judged == nil || f.Judged.Of != OfRequests {
		t.Fatalf("judged %+v", f.Judged)
	}
	for _, row := range f.Rows {
		switch {
		case row.HostLoad != 0 || row.Judged == nil:
		case row.Remedy.Name == None && *row.Judged < 10:
			t.Errorf("left alone: %v ms, and stops of tens of milliseconds were recorded", *row.Judged)
		case row.Remedy.Name == Raise && row.Remedy.Factor == 2 && *row.Judged > 5:
			t.Errorf("with twice the limit: %v ms", *row.Judged)
		}
	}
	if r := f.Check.Judged.ratio(); r > 0.3 {
		t.Errorf("left alone it is %v, and %v was recorded", *f.Check.Judged.Replayed, *f.Check.Judged.Recorded)
	}
}
