package forecast

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// What wakes a pool and what it spends make its rank.
func TestRankOfAPool(t *testing.T) {
	l := &Load{limit: 0.8, window: 6 * time.Second, requests: make([]recordedRequest, requests.Least)}
	var (
		loop       = &Pool{woken: wakeups{outside: 756, inside: 90}, cpu: 375 * ms}
		hashers    = &Pool{woken: wakeups{inside: 107}, wokenBy: map[*Pool]int{loop: 107}, cpu: 2967 * ms} // spend the quota
		dispatcher = &Pool{woken: wakeups{outside: 634, timer: 14, inside: 1391}, cpu: 120 * ms}
		relay      = &Pool{woken: wakeups{outside: 634, timer: 14, inside: 1391}, cpu: 120 * ms} // woken by whom it never wakes
		threads    = &Pool{woken: wakeups{inside: 1109}, cpu: 930 * ms}
		machine    = &Pool{woken: wakeups{inside: 97}, wokenBy: map[*Pool]int{threads: 80, dispatcher: 17}, cpu: 20 * ms}
		collector  = &Pool{woken: wakeups{inside: 406}, wokenBy: map[*Pool]int{machine: 200}, cpu: 1350 * ms}
		server     = &Pool{woken: wakeups{outside: 900}, cpu: 4 * time.Second} // spends the quota itself
		ticks      = &Pool{woken: wakeups{timer: 120, outside: 1}}
		seldom     = &Pool{woken: wakeups{outside: 19}}
	)
	threads.wokenBy = map[*Pool]int{dispatcher: 772, machine: 53, threads: 272}
	dispatcher.wokenBy = map[*Pool]int{threads: 1373, machine: 17}
	relay.wokenBy = map[*Pool]int{ticks: 1391}
	for name, c := range map[string]struct {
		pool *Pool
		want int
	}{
		"event loop": {loop, answers}, "its workers": {hashers, works}, "server": {server, works}, "ticks": {ticks, keepsTime}, "seldom": {seldom, works},
		"dispatcher": {dispatcher, answers}, "relay": {relay, works}, "request threads": {threads, handed}, "virtual machine": {machine, works}, "collector": {collector, works},
	} {
		if got := l.rank(c.pool); got != c.want {
			t.Errorf("%s: rank %d, want %d", name, got, c.want)
		}
	}
	l.requests = l.requests[1:]
	if got := l.rank(threads); got != works {
		t.Errorf("without requests in the recording: rank %d, want %d", got, works)
	}
	for _, p := range []*Pool{loop, hashers, dispatcher, relay, threads, machine, collector, server, ticks, seldom} {
		if got, want := l.serves(p), p == loop || p == dispatcher || p == threads; got != want {
			t.Errorf("a pool of %v: serves %v, want %v", p.woken, got, want)
		}
	}
}

func TestMostHurt(t *testing.T) {
	for name, test := range map[string]struct {
		want hurt
		of   []hurt
	}{
		"a large factor":                     {hurt{answers, 5}, []hurt{{works, 40}, {keepsTime, 500}}},
		"half as much again":                 {hurt{answers, 1.6}, []hurt{{works, 40}, {handed, 50}}},
		"hardly hurt":                        {hurt{works, 40}, []hurt{{answers, 1.4}, {keepsTime, 500}}},
		"few stops in the recording":         {hurt{answers, 1.46}, []hurt{{works, 1.49}}},
		"few stops, and it loses a fifth":    {hurt{works, 1.49}, []hurt{{answers, 1.1}, {keepsTime, 1.45}}},
		"handed the requests":                {hurt{handed, 1.53}, []hurt{{works, 1.74}, {works, 1.66}, {keepsTime, 8.5}}},
		"the larger factor of a rank":        {hurt{works, 1.74}, []hurt{{works, 1.66}}},
		"timers alone":                       {hurt{keepsTime, 9}, nil},
		"timers, and another is hardly hurt": {hurt{keepsTime, 9}, []hurt{{answers, 1.2}}},
	} {
		t.Run(name, func(t *testing.T) {
			all := append(slices.Clone(test.of), test.want)
			if got := all[mostHurt(all)]; got != test.want {
				t.Errorf("%+v of %+v", got, all)
			}
		})
	}
}

// Who decides does not depend on the order of the pools; one that is hurt less and is of no higher rank changes nothing; and
// none of the others is ahead in both.
func TestMostHurtProperties(t *testing.T) {
	one := rapid.Custom(func(t *rapid.T) hurt {
		return hurt{rapid.IntRange(keepsTime, answers).Draw(t, "rank"), rapid.Float64Range(1.001, 50).Draw(t, "factor")}
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(one, 1, 8).Draw(t, "pools")
		worst := all[mostHurt(all)]
		if other := rapid.Permutation(all).Draw(t, "order"); other[mostHurt(other)] != worst {
			t.Fatalf("%+v, and in another order %+v", worst, other[mostHurt(other)])
		}
		for _, h := range all {
			if h.rank >= worst.rank && h.factor > worst.factor {
				t.Fatalf("%+v decides, and %+v is ahead in both", worst, h)
			}
		}
		less := hurt{rapid.IntRange(keepsTime, worst.rank).Draw(t, "no higher"), rapid.Float64Range(1.0005, worst.factor).Draw(t, "less")}
		if more := append(slices.Clone(all), less); more[mostHurt(more)] != worst {
			t.Fatalf("%+v decides instead of %+v", more[mostHurt(more)], worst)
		}
	})
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
