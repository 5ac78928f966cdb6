package diagnose_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// told is what an analysis tells of a recording while it reads it.
type told struct {
	stops []diagnose.Stop
	// ran and wanted are the integrals of what Counts told up to at.
	at, ran, wanted time.Duration
	nRan, nWanted   int
}

func (s *told) count(at time.Duration, width, wanted int) {
	s.ran += time.Duration(s.nRan) * (at - s.at)
	s.wanted += time.Duration(s.nWanted) * (at - s.at)
	s.at, s.nRan, s.nWanted = at, width, wanted
}

func (s *told) options() diagnose.Options {
	return diagnose.Options{
		Stops:  func(stop diagnose.Stop) { s.stops = append(s.stops, stop) },
		Counts: s.count,
	}
}

// check: stops have a length, and end within the window.
func (s *told) check(t interface{ Fatalf(string, ...any) }, window time.Duration) {
	for _, stop := range s.stops {
		if stop.From >= stop.To || stop.To > window {
			t.Fatalf("%+v in a window of %v", stop, window)
		}
	}
}

// covered is the time that lies in at least one of the stops.
func covered(stops []diagnose.Stop) (all time.Duration) {
	stops = slices.SortedFunc(slices.Values(stops), func(x, y diagnose.Stop) int { return cmp.Compare(x.From, y.From) })
	until := time.Duration(0)
	for _, s := range stops {
		if from := max(s.From, until); from < s.To {
			all += s.To - from
			until = s.To
		}
	}
	return all
}

// Counts and stops add up to what the explanation counts.
func TestToldAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawSchedule(t)
		var s told
		a := diagnose.New(r.Header, s.options())
		for i := range r.Events {
			a.Add(&r.Events[i])
		}
		e := a.Finish(r.Footer)
		s.check(t, time.Duration(r.Footer.EndNS))
		_, running := sum(e.Width)
		_, demand := sum(e.Wanted)
		if s.count(time.Duration(r.Footer.EndNS), 0, 0); s.ran != running || s.wanted != demand {
			t.Fatalf("counts tell of %v running and %v wanted, want %v and %v", s.ran, s.wanted, running, demand)
		}
		if got := covered(s.stops); e.Stopped != nil && got != *e.Stopped {
			t.Fatalf("stops cover %v, stopped %v", got, *e.Stopped)
		}
	})
}

func TestStopsOfEventsThatContradictEachOther(t *testing.T) {
	for seed := range uint64(300) {
		h, events := anyEvents(seed, 400)
		var s told
		a := diagnose.New(h, s.options())
		for i := range events {
			a.Add(&events[i])
		}
		end := events[len(events)-1].AtNS
		a.Finish(recording.Footer{EndNS: end})
		s.check(t, time.Duration(max(end, 1<<62))) // events may be out of order: the analysis never goes back
	}
}
