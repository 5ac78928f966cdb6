package forecast

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// compiled has workers that need four fifths of the quota, and a compiler that works for 25 ms in each third period up to a moment.
func compiled(until time.Duration) recording.Recording {
	const length = 6 * time.Second
	s := rt.New(4).Limit(50*ms, 100*ms).Process("java")
	workers, compiler := s.Threads("worker", 4), s.Threads("C2 CompilerThre", 1)
	s.Client(s.Outsider("client"), workers...)
	s.Repeat(int(length/(100*ms)), 100*ms, func(at time.Duration) {
		if at < until && at%(300*ms) == 0 {
			s.Work(at+ms, 25*ms, compiler...)
		}
		s.Work(at+5*ms, 10*ms, workers...)
	})
	return s.Run(length)
}

// A compiler whose work falls is left out of the rows, and one that goes on is not. The recording is checked as it is in both cases.
func TestCompilerThatComesToRest(t *testing.T) {
	for name, test := range map[string]struct {
		until time.Duration
		warm  bool
	}{
		"falls":     {2 * time.Second, true},
		"goes on":   {time.Hour, false},
		"has begun": {0, false},
	} {
		f, err := Make(loadOf(t, compiled(test.until)), Options{Seeds: 2, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		noted := strings.Contains(strings.Join(f.Notes, "\n"), "the compiler's share of the CPU time fell")
		left := f.Left()
		if noted != test.warm || f.Check.Failed() != "" || len(f.Check.FailedBeside()) > 0 {
			t.Errorf("%s: noted %v; judged %v, recorded %v; notes %q", name, noted, *f.Check.Judged.Replayed,
				*f.Check.Judged.Recorded, f.Notes)
		}
		if rested := left.Figures.Stopped < 200*ms; rested == (name == "goes on") {
			t.Errorf("%s: left as it is, it is stopped for %v", name, left.Figures.Stopped)
		}
	}
}

// Work at the end counts as what is left of it.
func TestCompilerThatIsStillAtWork(t *testing.T) {
	l := loadOf(t, compiled(2*time.Second))
	warm, now, then := l.warmedUp()
	if warm == nil || now < 0.05 || now > 0.2 || then > 0.01 {
		t.Fatalf("%v, from %.3f to %.3f", warm != nil, now, then)
	}
	if warm.recorded != l.recorded || len(warm.replay.Threads) != len(l.replay.Threads) {
		t.Error("what was recorded is another")
	}
}
