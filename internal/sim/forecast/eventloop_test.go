package forecast

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// hellos is an event loop of 400 short answers a second beside two workers of 40 ms every 100 ms, to which it hands that
// work. One of them wakes the loop at its end. calls: the loop waits for that, and has no other wake-up meanwhile.
func hellos(calls bool) recording.Recording {
	const us = time.Microsecond
	s := rt.New(3).Limit(100*ms, 100*ms).Process("node")
	loop, workers := s.Main(), s.Threads("hasher", 2)
	s.WokenBy(loop, workers...)
	s.Client(s.Outsider("client"), loop)
	s.Repeat(20, 100*ms, func(at time.Duration) {
		s.Work(at+100*us, 40*ms, workers...)
		answered := at + 40*ms
		for hello := at; hello < at+100*ms; hello += 5 * ms / 2 {
			if !calls || hello == at || hello > answered {
				s.Work(hello, 300*us, loop)
			}
		}
		s.Add(recording.Event{Kind: recording.Wakeup, AtNS: (answered - us).Nanoseconds(), Thread: loop, Waker: workers[0]})
		s.Work(answered, 300*us, loop)
	})
	return s.Run(2 * time.Second)
}

// A thread that answers clients while another one works for it takes what comes first, and is not late with its clients'
// requests where the other one is slower. One that calls another one and blocks waits for it.
func TestEventLoop(t *testing.T) {
	for _, calls := range []bool{false, true} {
		l := loadOf(t, hellos(calls))
		p := l.Pools[0]
		if p.Name != "node" || len(p.workloads) != 1 {
			t.Fatalf("pools %v", l.PoolNames())
		}
		loop := l.replay.WakeOrders[p.workloads[0]] != 0
		if loop == calls {
			t.Errorf("calls %v: loop %v", calls, loop)
		}
		f, err := Make(l, Options{Seeds: 2, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range f.Rows {
			if row.Remedy.Name != Pin {
				continue
			}
			if p99 := *row.Figures.Pools[0].Response.P99; (p99 < 15) == calls {
				t.Errorf("calls %v: on one CPU the workers take twice as long, and the loop's p99 is %.1f ms", calls, p99)
			}
		}
	}
}
