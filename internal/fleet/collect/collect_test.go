package collect

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/fleet"
	"github.com/unthrottle/unthrottle/internal/fleet/store"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
	"github.com/unthrottle/unthrottle/internal/txn"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func round(at time.Time, containers int) (all []observe.Observation) {
	for i := range containers {
		path := "/" + string(rune('a'+i))
		all = append(all, observe.Observation{Container: container.Container{Name: path, Group: cgroup.Group{Path: path}}, CgroupID: uint64(i + 1),
			Start: at, Window: time.Second, UsedCPUs: new(0.5)})
	}
	return all
}

// What was observed is in the folder once, the slot under way too, with the remedy in force.
func TestSink(t *testing.T) {
	dir := t.TempDir()
	s := New(Options{Dir: dir, Names: fleet.Names{Node: "n"}, InForce: func() ([]txn.InForce, error) {
		return []txn.InForce{{Target: "/b", Remedy: "burst"}}, nil
	}})
	for i := range 700 { // two slots, and a third of the next
		s.Round(round(noon.Add(time.Duration(i)*time.Second), 3))
	}
	written, err := s.Close(round(noon, 3))
	if err != nil || written != 9 {
		t.Fatalf("%d rows, %v", written, err)
	}
	rows, err := store.Read(filepath.Join(dir, "cluster=unknown", "date=2026-11-25", "hour=12", "n.parquet"))
	if err != nil || len(rows) != 9 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	seconds := 0.0
	for _, r := range rows {
		seconds += r.Seconds
		if (r.Remedy == "burst") != (r.Container == "/b") {
			t.Errorf("%s: %q", r.Container, r.Remedy)
		}
	}
	if seconds != 2100 {
		t.Errorf("%v seconds", seconds)
	}
	if again, err := s.Close(nil); again != 9 || err != nil {
		t.Errorf("closed twice: %d, %v", again, err)
	}
}

// Rows per period come from another goroutine.
func TestPeriods(t *testing.T) {
	var rows []fleet.Row
	s := New(Options{Dir: "x", write: func(_ string, of []fleet.Row) error { rows = append(rows, of...); return nil }})
	s.Feed(true)
	limited := func(i int) []observe.Observation {
		all := round(noon.Add(time.Duration(i)*time.Second), 1)
		all[0].Levels = []cgroup.Level{{Path: "/a", Limit: cgroup.Limit{Quota: 100 * time.Millisecond, Period: 100 * time.Millisecond}}}
		return all
	}
	s.Round(limited(0))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			s.Period(counts.PeriodRow{Cgroup: 1, LengthNS: 1e8, MeanWidth: 1.5, MostWidth: 3})
		}
	}()
	for i := range 10 {
		s.Round(limited(1 + i))
	}
	<-done
	s.Feed(false)
	s.Feed(true)
	s.Period(counts.PeriodRow{Cgroup: 1, LengthNS: 1e8, MeanWidth: 9, MostWidth: 9}) // no round has told of it since
	if _, err := s.Close(nil); err != nil || len(rows) != 1 || rows[0].CandidateSeconds != nil {
		t.Errorf("%v: %+v", err, rows)
	}
}

// A disk that is full for a while loses nothing, and one that stays full is told.
func TestSinkTriesAgain(t *testing.T) {
	full := errors.New("no space left on device")
	for name, fails := range map[string]int{"for a while": 1, "for ever": 1 << 30} {
		var mu sync.Mutex
		var got []fleet.Row
		told := 0
		s := New(Options{Dir: "x", Failed: func(error) { mu.Lock(); told++; mu.Unlock() }, write: func(_ string, rows []fleet.Row) error {
			mu.Lock()
			defer mu.Unlock()
			if fails > 0 {
				fails--
				return full
			}
			got = append(got, rows...)
			return nil
		}})
		for i := range 3 {
			s.Round(round(noon.Add(time.Duration(i)*fleet.SlotLength), 2))
		}
		written, err := s.Close(nil)
		if name == "for ever" {
			if !errors.Is(err, full) || written != 0 || told == 0 {
				t.Errorf("%s: %d rows, %v, told %d times", name, written, err, told)
			}
			continue
		}
		if err != nil || written != 6 || len(got) != 6 || told != 1 {
			t.Errorf("%s: %d rows, %v, got %d, told %d times", name, written, err, len(got), told)
		}
	}
}

// The rows that wait are bounded, and what is lost is counted.
func TestSinkIsBounded(t *testing.T) {
	s := New(Options{Dir: "x", write: func(string, []fleet.Row) error { return errors.New("no") }})
	for range 3 {
		s.hand(make([]fleet.Row, maxWaiting/2+1))
	}
	if _, err := s.Close(nil); err == nil || s.Lost() == 0 {
		t.Errorf("%v, lost %d", err, s.Lost())
	}
}
