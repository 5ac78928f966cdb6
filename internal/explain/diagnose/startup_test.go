package diagnose_test

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// TestStartup: a note where the stops lie in the first seconds of the oldest process, and end with them as far as is seen.
func TestStartup(t *testing.T) {
	// wide works 8 wide for a while from some time on, and is stopped then; otherwise it works 10 ms in 100.
	wide := func(length time.Duration, from, to time.Duration) *rt.Schedule {
		s := rt.New(8).Limit(50*ms, 100*ms).Process("java")
		all := s.Threads("compile", 8)
		for at := time.Duration(0); at < length; at += 200 * ms {
			if at >= from && at < to {
				s.Work(at, 8*ms, all...)
			} else {
				s.Work(at, 10*ms, all[0])
			}
		}
		return s
	}
	seconds := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	for name, c := range map[string]struct {
		age              *time.Duration
		length, from, to time.Duration
		want, over       bool
	}{
		"it ends with the start-up":        {new(seconds(25)), seconds(10), 0, seconds(4), true, true},
		"the recording ends before":        {new(seconds(3)), seconds(10), 0, seconds(4), true, false},
		"it goes on":                       {new(seconds(25)), seconds(10), 0, seconds(10), false, false},
		"it goes on a little":              {new(seconds(27)), seconds(10), 0, seconds(3.3), false, false},
		"it begins afterwards":             {new(seconds(25)), seconds(10), seconds(6), seconds(9), false, false},
		"too little is seen of afterwards": {new(seconds(21)), seconds(10), 0, seconds(4), true, false},
		"older":                            {new(seconds(31)), seconds(10), 0, seconds(4), false, false},
		"not stopped":                      {new(seconds(25)), seconds(10), 0, 0, false, false},
		"a time before the start":          {new(seconds(-1)), seconds(10), 0, seconds(4), false, false},
		"the age is not known":             {nil, seconds(10), 0, seconds(4), false, false},
	} {
		r := wide(c.length, c.from, c.to).Run(c.length)
		if c.age != nil {
			r.Header.Target.AgeNS = new(c.age.Nanoseconds())
		}
		e := explain(r)
		got := e.Startup
		if (got != nil) != c.want || got != nil && got.Over != c.over {
			t.Errorf("%s: %+v, stopped %v", name, got, *e.Stopped)
		}
		if got != nil && (got.Age != *c.age || got.Stopped > *e.Stopped || got.Stopped < *e.Stopped*9/10 ||
			got.After < 0 || got.After > c.length) {
			t.Errorf("%s: %+v of %v", name, got, *e.Stopped)
		}
		if (e.Cause == diagnose.None) != (c.to == 0) {
			t.Errorf("%s: cause %s: the note is beside the cause, not in its place", name, e.Cause)
		}
	}
}

// A program whose own compiler uses a large share of its CPU time is warming up.
func TestWarmingUp(t *testing.T) {
	pools := func(compiler time.Duration) *diagnose.Explanation {
		return &diagnose.Explanation{Pools: []diagnose.PoolUse{{Name: "exec-*", CPU: time.Second},
			{Name: "C2 CompilerThre", CPU: compiler}, {Name: "C1 CompilerThre", CPU: compiler}}}
	}
	if got := pools(100 * ms).WarmingUp(); got < 0.16 || got > 0.17 {
		t.Errorf("%v", got)
	}
	if got := pools(20 * ms).WarmingUp(); got != 0 {
		t.Errorf("a warm one: %v", got)
	}
	if got := new(diagnose.Explanation).WarmingUp(); got != 0 {
		t.Errorf("nothing ran: %v", got)
	}
}
