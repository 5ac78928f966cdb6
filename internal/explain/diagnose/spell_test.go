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

// spells are those of a recording, with its stops.
type spells struct {
	of    []diagnose.Spell
	stops []diagnose.Stop
	// ran and wanted are the integrals of what Counts told up to at.
	at, ran, wanted time.Duration
	nRan, nWanted   int
}

func (s *spells) count(at time.Duration, width, wanted int) {
	s.ran += time.Duration(s.nRan) * (at - s.at)
	s.wanted += time.Duration(s.nWanted) * (at - s.at)
	s.at, s.nRan, s.nWanted = at, width, wanted
}

func (s *spells) options() diagnose.Options {
	return diagnose.Options{
		Spells: func(spell diagnose.Spell) { s.of = append(s.of, spell) },
		Stops:  func(stop diagnose.Stop) { s.stops = append(s.stops, stop) },
		Counts: s.count,
	}
}

// check: spells have a length, and those of a thread do not overlap.
func (s *spells) check(t interface{ Fatalf(string, ...any) }, window time.Duration) {
	last := map[uint32]time.Duration{}
	for _, spell := range s.of {
		if spell.From >= spell.To || spell.From < last[spell.TID] || spell.To > window || spell.State == recording.Sleeping ||
			spell.HeldBy != "" && spell.State != recording.Runnable {
			t.Fatalf("%+v after %v, in a window of %v", spell, last[spell.TID], window)
		}
		last[spell.TID] = spell.To
	}
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

// Spells add up to what the explanation counts: running, waiting, and held back; so do stops.
func TestSpells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawSchedule(t)
		var s spells
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
		var ran, waiting, held time.Duration
		for _, spell := range s.of {
			switch {
			case spell.State == recording.Running:
				ran += spell.To - spell.From
			case spell.HeldBy != "":
				held += spell.To - spell.From
			default:
				waiting += spell.To - spell.From
			}
			if spell.Comm == "" || spell.TGID == 0 {
				t.Fatalf("it has no name: %+v", spell)
			}
		}
		byQuota := e.Waiting[diagnose.OwnQuota] + e.Waiting[diagnose.AncestorQuota]
		if ran != running || held != byQuota || waiting+held != waited(e.Waiting) {
			t.Fatalf("ran %v of %v, held %v of %v, waited %v of %v", ran, running, held, byQuota, waiting+held, waited(e.Waiting))
		}
		if got := covered(s.stops); e.Stopped != nil && got != *e.Stopped {
			t.Fatalf("stops cover %v, stopped %v", got, *e.Stopped)
		}
	})
}

func TestSpellsOfEventsThatContradictEachOther(t *testing.T) {
	for seed := range uint64(300) {
		h, events := anyEvents(seed, 400)
		var s spells
		a := diagnose.New(h, s.options())
		for i := range events {
			a.Add(&events[i])
		}
		end := events[len(events)-1].AtNS
		a.Finish(recording.Footer{EndNS: end})
		s.check(t, time.Duration(max(end, 1<<62))) // events may be out of order: the analysis never goes back
	}
}
