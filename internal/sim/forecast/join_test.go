package forecast

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// tasks is a thread that gives a task to two others 20 times, whose parts take 4 and 8 ms by turns. The one that is through
// last wakes it, or the one that is through first. All have a CPU of their own.
func tasks(t *testing.T, byLast bool) *Load {
	s := rt.New(3).Limit(300*ms, 100*ms).Process("app")
	vm, gc := s.Threads("vm", 1)[0], s.Threads("gc", 2)
	at := func(d time.Duration, e recording.Event) { e.AtNS = d.Nanoseconds(); s.Add(e) }
	for i := range 20 {
		now := time.Duration(i) * 40 * ms
		at(now, recording.Event{Kind: recording.Wakeup, Thread: vm, CPU: 2, Owner: recording.Kernel})
		at(now, recording.Event{Kind: recording.Switch, NextThread: vm, CPU: 2})
		for c, id := range gc {
			at(now+ms, recording.Event{Kind: recording.Wakeup, Thread: id, CPU: int32(c), Waker: vm})
			at(now+ms, recording.Event{Kind: recording.Switch, NextThread: id, CPU: int32(c)})
		}
		at(now+2*ms, recording.Event{Kind: recording.Switch, Thread: vm, CPU: 2})
		for j, took := range []time.Duration{4 * ms, 8 * ms} {
			c := (i + j) % 2
			if wakes := j == 1; wakes == byLast {
				at(now+ms+took, recording.Event{Kind: recording.Wakeup, Thread: vm, CPU: 2, Waker: gc[c]})
				at(now+ms+took, recording.Event{Kind: recording.Switch, NextThread: vm, CPU: 2})
			}
			at(now+ms+took, recording.Event{Kind: recording.Switch, Thread: gc[c], CPU: int32(c)})
		}
		at(now+10*ms, recording.Event{Kind: recording.Switch, Thread: vm, CPU: 2})
	}
	return loadOf(t, s.Run(time.Second))
}

// A thread that only the last of two others wakes waits for both, and one that the first wakes for that one.
func TestTasksAreJoined(t *testing.T) {
	for byLast, want := range map[bool]int{true: 20, false: 0} {
		l, n := tasks(t, byLast), 0
		for _, thread := range l.replay.Threads {
			for _, s := range thread.Steps {
				if s.Kind == simulate.StepAwait && s.Thread > 0 {
					n++
				}
			}
		}
		if n != want {
			t.Errorf("woken by the last: %v: %d sleeps wait for two threads, want %d", byLast, n, want)
		}
	}
}
