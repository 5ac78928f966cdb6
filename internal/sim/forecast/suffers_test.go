package forecast

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// The pool that answers clients and spends little comes before the one that spends the quota, and that before timers,
// unless it is hardly hurt.
func TestWhoSuffers(t *testing.T) {
	l := &Load{limit: 0.8, window: 6 * time.Second}
	var (
		loop    = &Pool{woken: wakeups{outside: 756, inside: 90}, cpu: 375 * ms}
		workers = &Pool{woken: wakeups{inside: 107}, cpu: 2967 * ms}
		server  = &Pool{woken: wakeups{outside: 900}, cpu: 4 * time.Second} // spends the quota itself
		ticks   = &Pool{woken: wakeups{timer: 120, outside: 1}}
		seldom  = &Pool{woken: wakeups{outside: 19}}
	)
	for name, c := range map[string]struct {
		pool *Pool
		want int
	}{
		"event loop": {loop, answers}, "workers": {workers, works}, "server": {server, works}, "ticks": {ticks, keepsTime}, "seldom": {seldom, works},
	} {
		if got := l.rank(c.pool); got != c.want {
			t.Errorf("%s: rank %d, want %d", name, got, c.want)
		}
	}
	order := []hurt{{answers, 5}, {answers, 1.6}, {works, 40}, {keepsTime, 500}, {works, 1.4}, {answers, 1.3}, {works, 1.1}}
	for i := range order {
		for k := range order {
			if got := order[i].before(order[k]); got != (i < k) {
				t.Errorf("%v before %v: %v", order[i], order[k], got)
			}
		}
	}
}

// The processes of a build begin each other: no latency of theirs is judged, whatever clients did to older ones.
func TestNothingWaits(t *testing.T) {
	for _, service := range []bool{false, true} {
		s := rt.New(2).Limit(50*ms, 100*ms).Process("make")
		first := s.Main()
		s.Repeat(100, 20*ms, func(at time.Duration) {
			child := s.Child("cc1")
			s.WokenBy(child, first)
			if service {
				s.Client(recording.FirstOwner, first)
			}
			s.Work(at, 9*ms, child)
			s.Work(at+5*ms, ms, first)
		})
		f, err := Make(loadOf(t, s.Run(2*time.Second)), Options{Seeds: 1, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if (f.Judged != nil) != service {
			t.Errorf("service %v: judged %+v", service, f.Judged)
		}
	}
}
