package schedule_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// follower checks that each change follows from those before it.
type follower struct {
	t       *rapid.T
	now     int64
	threads map[*schedule.Thread]schedule.Doing
	index   map[int]*schedule.Thread
	holds   map[int32]*schedule.Thread
	open    map[*schedule.Connection]bool
}

func (f *follower) Event(nowNS int64, _ *recording.Event) {
	if nowNS < f.now {
		f.t.Fatalf("time goes back from %d to %d", f.now, nowNS)
	}
	f.now = nowNS
	running := 0
	for t, d := range f.threads {
		if t.Doing != d {
			f.t.Fatalf("thread %d does %+v, told %+v", t.TID, t.Doing, d)
		}
		if d.State == schedule.Running {
			running++
			if f.holds[d.CPU] != t {
				f.t.Fatalf("thread %d runs on CPU %d, which somebody else holds", t.TID, d.CPU)
			}
		}
	}
	for _, t := range f.holds {
		if t != nil {
			running--
		}
	}
	if running != 0 {
		f.t.Fatalf("%d threads more run than hold a CPU", running)
	}
}

func (f *follower) Changed(c *schedule.Change) {
	t := c.Thread
	switch c.Kind {
	case schedule.Began:
		if f.index[t.Index] != nil || t.Index >= schedule.MaxThreads || t.Doing != (schedule.Doing{}) {
			f.t.Fatalf("thread %d begins with index %d: %+v", t.TID, t.Index, t.Doing)
		}
		f.index[t.Index], f.threads[t] = t, t.Doing
	case schedule.Ended:
		if t.State != schedule.Sleeping {
			f.t.Fatalf("thread %d ends and is in state %d", t.TID, t.State)
		}
		delete(f.index, t.Index)
		delete(f.threads, t)
	case schedule.Woke, schedule.Did, schedule.Moved:
		if c.Was != f.threads[t] || (c.Kind == schedule.Woke && (c.Was.Wants() || !t.Wants())) {
			f.t.Fatalf("change %d of thread %d from %+v to %+v, was %+v", c.Kind, t.TID, c.Was, t.Doing, f.threads[t])
		}
		if c.Kind == schedule.Moved && (c.Was.State != t.State || t.State == schedule.Running) {
			f.t.Fatalf("thread %d is moved from %+v to %+v", t.TID, c.Was, t.Doing)
		}
		f.threads[t] = t.Doing
	case schedule.Named:
		f.threads[t] = t.Doing // a header tells where it is
	case schedule.Took:
		f.holds[c.CPU] = c.Holder.Thread
	case schedule.Received:
		f.open[c.Connection] = true
	case schedule.Sent:
		if !f.open[c.Connection] || t == nil || t.State != schedule.Running || c.Connection.EndNS != f.now {
			f.t.Fatalf("%+v is answered at %d by %+v", c.Connection, f.now, t)
		}
	case schedule.Over:
		if !f.open[c.Connection] {
			f.t.Fatalf("a request of connection %d is over that never began", c.Connection.Index)
		}
		f.open[c.Connection] = c.Event != nil
	}
}

// Whatever the events say, a thread runs exactly on the CPU that it holds, each change begins where the last one ended, indices are not
// shared, and a request that began in the recording is over once.
func TestChangesFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(to int, what string) int { return rapid.IntRange(0, to).Draw(t, what) }
		var h recording.Header
		for range number(6, "threads") {
			h.Threads = append(h.Threads, recording.Thread{
				TID: uint32(number(5, "tid")), TGID: 1, CPU: int32(number(3, "cpu")), State: recording.State(number(2, "state")),
			})
		}
		f := &follower{
			t: t, threads: map[*schedule.Thread]schedule.Doing{}, index: map[int]*schedule.Thread{},
			holds: map[int32]*schedule.Thread{}, open: map[*schedule.Connection]bool{},
		}
		r := schedule.New(&h, f)
		at := int64(0)
		for range number(80, "events") {
			at += int64(number(2000, "later")) - 100
			r.Add(&recording.Event{
				AtNS: at, Kind: recording.Kind(number(int(recording.Send), "kind")), Flags: recording.Flags(number(15, "flags")),
				CPU: int32(number(3, "on")), Thread: uint32(number(6, "thread")), NextThread: uint32(number(6, "next")),
				Waker: uint32(number(6, "waker")), TGID: uint32(number(2, "tgid")), Socket: uint32(number(2, "socket")),
				Count: uint64(number(3000, "count")),
			})
		}
		r.Finish()
		f.Event(f.now, nil)
	})
}

// A client that sends its next request within half a millisecond of each answer has a closed loop; one that asks by a clock has none.
func TestLoop(t *testing.T) {
	for _, c := range []struct {
		gap    int64
		n      int
		closed bool
	}{{200_000, 5, true}, {200_000, 4, false}, {2_000_000, 50, false}} {
		at, client := int64(0), schedule.NewConnection(1)
		for range c.n + 1 {
			at += c.gap
			client.Receive(&recording.Event{}, at)
			at += 1000
			client.Send(at, true)
		}
		if l := client.Loop(); l.Closed() != c.closed || l.Requests != c.n {
			t.Errorf("%d requests %d ns after the answers: %+v", c.n, c.gap, l)
		}
	}
}
