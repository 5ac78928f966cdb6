package forecast

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// act is what a thread does: it uses CPU time, or reads or answers a connection's request, or sleeps until it is woken.
type act struct {
	kind   recording.Kind // Receive, Send; 0: neither
	socket uint32
	thread int // of two
	runs   time.Duration
	sleeps bool
	// late: the thread that wakes this one sleeps before its wake-up is recorded, as one that reaches another CPU by an interrupt is.
	late bool
}

func reads(socket uint32) act         { return act{kind: recording.Receive, socket: socket} }
func answers(socket uint32) act       { return act{kind: recording.Send, socket: socket} }
func runs(work time.Duration) act     { return act{runs: work} }
func (a act) by(thread int) act       { a.thread = thread; return a }
func (a act) wokenLate() act          { a.late = true; return a }
func repeated(n int, as ...act) []act { return slices.Repeat(as, n) }

// acted is a recording of two threads on one CPU, of which one runs at a time: a thread that acts is woken first, by the one before if
// that still runs, and by a client if that slept.
func acted(acts []act) recording.Recording {
	s := rt.New(1).Limit(50*ms, 100*ms).Process("server")
	tids := s.Threads("server", 2)
	now, on := 10*ms, -1
	at := func(e recording.Event) { e.AtNS = now.Nanoseconds(); s.Add(e) }
	for _, a := range acts {
		if a.sleeps {
			at(recording.Event{Kind: recording.Switch, Thread: tids[on]})
			on = -1
			now += ms
			continue
		}
		if on != a.thread {
			wake, change := recording.Event{Kind: recording.Wakeup, Thread: tids[a.thread], Owner: recording.FirstOwner},
				recording.Event{Kind: recording.Switch, NextThread: tids[a.thread]}
			if on >= 0 {
				wake.Waker, change.Thread = tids[on], tids[on]
			}
			if a.late {
				at(recording.Event{Kind: recording.Switch, Thread: tids[on]})
				now += 50 * time.Microsecond
				change.Thread = 0
			}
			at(wake)
			at(change)
			on = a.thread
		}
		now += a.runs
		if a.kind != 0 {
			now += time.Microsecond
			at(recording.Event{Kind: a.kind, Thread: tids[on], Socket: a.socket})
		}
	}
	if on >= 0 {
		at(recording.Event{Kind: recording.Switch, Thread: tids[on]})
	}
	return s.Run(now + 10*ms)
}

// Of what a thread does between the read of a request and its answer, a request has only what was done for it.
func TestOwnWork(t *testing.T) {
	sleep := act{sleeps: true}
	for name, c := range map[string]struct {
		acts []act
		want []time.Duration // by the order of the first answers
	}{
		"one at a time": {
			[]act{reads(1), runs(5 * ms), answers(1), runs(2 * ms), reads(2), runs(ms), answers(2)}, []time.Duration{5 * ms, ms}},
		"it waits for something outside meanwhile": {
			[]act{reads(1), runs(5 * ms), sleep, runs(3 * ms), answers(1)}, []time.Duration{8 * ms}},
		"an answer in parts": {[]act{reads(1), runs(5 * ms), answers(1), runs(3 * ms), answers(1), runs(ms)}, []time.Duration{8 * ms}},
		"pipelined: the last read before the answer begins the request": {
			[]act{reads(1), runs(5 * ms), reads(1), runs(3 * ms), answers(1)}, []time.Duration{3 * ms}},
		"an event loop that reads all first, a ping before an export": {
			[]act{reads(1), reads(2), runs(ms), answers(1), runs(100 * ms), answers(2)}, []time.Duration{ms, 100 * ms}},
		"an event loop that reads all first, a ping behind an export": {
			[]act{reads(2), reads(1), runs(100 * ms), answers(2), runs(ms), answers(1)}, []time.Duration{100 * ms, ms}},
		"an event loop that answers all at the end": {
			[]act{reads(1), runs(ms), reads(2), runs(100 * ms), answers(1), answers(2)}, []time.Duration{ms, 100 * ms}},
		"a ping while an export waits for something outside": {
			[]act{reads(1), runs(50 * ms), reads(2), runs(ms), answers(2), sleep, runs(50 * ms), answers(1)},
			[]time.Duration{ms, 100 * ms}},
		"a worker that takes one from a queue after the other": {
			[]act{reads(1), reads(2), runs(50 * ms).by(1), answers(1).by(1), runs(ms).by(1), answers(2).by(1)},
			[]time.Duration{50 * ms, ms}},
		"a helper that hands over its result in parts": {
			[]act{reads(1), runs(20 * ms).by(1), runs(ms), runs(30 * ms).by(1), runs(ms), sleep, runs(ms), answers(1),
				reads(2), runs(5 * ms).by(1), answers(2)}, []time.Duration{53 * ms, 5 * ms}},
		"a connection's next request, read by another thread": {
			[]act{reads(1), runs(ms), answers(1), runs(20 * ms), sleep, reads(1).by(1), runs(5 * ms).by(1), answers(1).by(1), sleep,
				runs(9 * ms), reads(2), runs(2 * ms), answers(2)}, []time.Duration{ms, 5 * ms, 2 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			l := loadOf(t, acted(c.acts))
			var got []time.Duration
			for i := range l.requests {
				got = append(got, l.requests[i].work.Round(ms))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Whatever one thread reads and answers in which order, no CPU time is of two requests, and none is of a request that came later.
func TestWorkIsOfOneRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		acts, used := []act{}, time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(t, "acts") {
			socket, work := uint32(rapid.IntRange(1, 4).Draw(t, "socket")), time.Duration(rapid.IntRange(0, 20).Draw(t, "work"))*ms
			used += work + time.Microsecond
			acts = append(acts, runs(work), rapid.SampledFrom([]act{reads(socket), answers(socket)}).Draw(t, "act"))
		}
		sum := time.Duration(0)
		for _, r := range loadOf(t, acted(acts)).requests {
			sum += r.work
			if r.work > r.took {
				t.Fatalf("%v of work in %v", r.work, r.took)
			}
		}
		if sum > used {
			t.Fatalf("%v of work by a thread that used %v", sum, used)
		}
	})
}

// A thread that wakes another one hands over what it did meanwhile, unless it lets go of the one lock of a process.
func TestHandsLock(t *testing.T) {
	for exe, want := range map[string]time.Duration{
		"/usr/bin/node": 51 * ms, "/usr/bin/python3.11": ms, "/usr/bin/python3.14t": 51 * ms, "/opt/bin/ruby": ms, "": 51 * ms,
	} {
		for how, back := range map[string]act{"at once": runs(ms), "by an interrupt": runs(ms).wokenLate()} {
			r := acted([]act{reads(1), runs(50 * ms).by(1), back, answers(1)})
			r.Header.Processes = []recording.Process{{TGID: r.Header.Threads[0].TGID, Comm: "server", Exe: exe}}
			l := loadOf(t, r)
			if len(l.requests) != 1 || l.requests[0].work.Round(ms) != want {
				t.Errorf("%s, woken %s: %+v, want %v", exe, how, l.requests, want)
			}
		}
	}
}

// Where an event loop serves pings and exports they are two kinds, also where each ping waits behind an export.
func TestKindsOfAnEventLoop(t *testing.T) {
	l := loadOf(t, acted(repeated(30,
		reads(1), reads(2), reads(3), runs(ms), answers(1), runs(50*ms), answers(3), runs(ms), answers(2), act{sleeps: true})))
	kinds := l.kinds()
	if len(kinds) != 2 || len(kinds[0].requests) != 60 || len(kinds[1].requests) != 30 {
		t.Errorf("%+v", kinds)
	}
}
