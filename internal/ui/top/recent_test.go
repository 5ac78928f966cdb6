package top

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// A row's cause is what cost most in ten seconds, not what the last look said.
func TestCauseIsThatOfTenSeconds(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	var r recent
	for i, l := range []look{
		{cause: diagnose.Burst, stopped: 0.4}, {cause: diagnose.Shortage, stopped: 0.2}, {cause: diagnose.None},
		{cause: diagnose.Neighbours},
	} {
		l.at = begun.Add(time.Duration(i) * time.Second)
		if r = r.with(l); r.cause() != diagnose.Burst {
			t.Errorf("after look %d: %q", i, r.cause())
		}
	}
	r = r.with(look{at: begun.Add(10500 * time.Millisecond), cause: diagnose.None})
	if r.cause() != diagnose.Shortage {
		t.Errorf("a burst of 10.5 s ago still counts: %q", r.cause())
	}
	if r = r.with(look{at: begun.Add(time.Minute), cause: diagnose.None}); r.cause() != diagnose.None {
		t.Errorf("calm for a minute, and %q", r.cause())
	}
	for range 3 * maxRecent {
		r = r.with(look{at: begun.Add(time.Minute)})
	}
	if len(r) != maxRecent || recent(nil).cause() != "" {
		t.Errorf("%d looks, %q", len(r), recent(nil).cause())
	}
}

func TestFeedKeepsCausesStable(t *testing.T) {
	f := feed{}
	at := time.Unix(1_700_000_000, 0)
	stopped := observation("/a", 400*time.Millisecond, 400*time.Millisecond)
	stopped.LimitCPUs, stopped.UsedCPUs = of(2.0), of(1.99)
	first := f.Frame(observe.Snapshot{At: at, Observations: []observe.Observation{stopped}}, none).Rows[0].Cause
	calm := f.Frame(observe.Snapshot{At: at.Add(time.Second),
		Observations: []observe.Observation{observation("/a", 0, 0)}}, none).Rows[0].Cause
	if first != diagnose.Shortage || calm != first {
		t.Errorf("%q, then %q", first, calm)
	}
	f.Frame(observe.Snapshot{At: at.Add(2 * time.Second)}, none)
	if len(f.recent) != 0 {
		t.Errorf("causes of %d containers that are gone", len(f.recent))
	}
}
