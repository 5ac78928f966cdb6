package requests_test

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// A request that takes longer than the bound is late when it is answered, and before, on a connection that answers; one that is read and
// never answered is none.
func TestLate(t *testing.T) {
	const ms = time.Millisecond
	event := func(at time.Duration, kind recording.Kind, socket uint32, count time.Duration) recording.Event {
		return recording.Event{AtNS: at.Nanoseconds(), Kind: kind, Socket: socket, Count: uint64(count), Thread: 1}
	}
	tick := func(at time.Duration) recording.Event { return event(at, recording.Period, 0, 0) }
	for name, c := range map[string]struct {
		events []recording.Event
		want   time.Duration
	}{
		"in time": {[]recording.Event{event(10*ms, recording.Receive, 1, 5*ms),
			event(90*ms, recording.Send, 1, 0), tick(500 * ms)}, 0},
		"answered late": {[]recording.Event{event(10*ms, recording.Receive, 1, 5*ms),
			event(160*ms, recording.Send, 1, 0)}, 155 * ms},
		"waited before": {[]recording.Event{event(200*ms, recording.Receive, 1, 120*ms),
			event(201*ms, recording.Send, 1, 0)}, 121 * ms},
		"not answered yet": {[]recording.Event{event(10*ms, recording.Receive, 1, 0),
			event(20*ms, recording.Send, 1, 0), event(30*ms, recording.Receive, 1, 0), tick(180 * ms)}, 150 * ms},
		"one that never answers": {[]recording.Event{event(10*ms, recording.Receive, 1, 0), tick(900 * ms)}, 0},
		"before the recording":   {[]recording.Event{event(10*ms, recording.Receive, 1, 900*ms), event(20*ms, recording.Send, 1, 0)}, 0},
		"idle in between": {[]recording.Event{event(10*ms, recording.Receive, 1, 0),
			event(20*ms, recording.Send, 1, 0), event(920*ms, recording.Receive, 1, 0), event(930*ms, recording.Send, 1, 0)}, 0},
	} {
		late := requests.NewLate(100 * ms)
		got := time.Duration(0)
		for i := range c.events {
			got = max(got, late.Add(&c.events[i]))
		}
		if got != c.want {
			t.Errorf("%s: late by %v, want %v", name, got, c.want)
		}
		unbound := requests.NewLate(0)
		for i := range c.events {
			if late := unbound.Add(&c.events[i]); late > 0 {
				t.Errorf("%s: late by %v without a bound", name, late)
			}
		}
		if longest := unbound.Longest(); longest < c.want || longest > max(c.want, 100*ms) {
			t.Errorf("%s: the longest took %v, and %v is late", name, longest, c.want)
		}
	}
}
