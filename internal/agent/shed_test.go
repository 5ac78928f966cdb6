package agent

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

func TestSheddingFollowsTheBudget(t *testing.T) {
	s := shedder{own: policy.Own{CPU: 0.01, MemoryBytes: 64 << 20}}
	looks := func(n int, cpu float64, resident int64) (changes int) {
		for range n {
			if s.judge(cpu, resident) != "" {
				changes++
			}
		}
		return changes
	}
	for _, step := range []struct {
		what     string
		n        int
		cpu      float64
		resident int64
		want     shedding
	}{
		{"one look above", 1, 0.02, 0, shedNothing},
		{"a look below ends the row", 1, 0.001, 0, shedNothing},
		{"another one above", 1, 0.02, 0, shedNothing},
		{"two in a row: recordings first", 1, 0.02, 0, shedRecordings},
		{"then periods, for memory too", 2, 0, 65 << 20, shedPeriods},
		{"then the rate", 2, 0.02, 0, shedRate},
		{"and nothing else", 20, 0.02, 0, shedRate},
		{"near the budget nothing comes back", 50, 0.009, 0, shedRate},
		{"well below it the last comes back first", 10, 0.001, 1 << 20, shedPeriods},
		{"then the others", 20, 0.001, 1 << 20, shedNothing},
	} {
		looks(step.n, step.cpu, step.resident)
		if s.level != step.want {
			t.Fatalf("%s: %v dropped, want %v", step.what, s.level.dropped(), step.want.dropped())
		}
	}
	s = shedder{}
	if looks(100, 50, 1<<40) > 0 {
		t.Error("without a budget something is dropped")
	}
}

func TestWhatIsDroppedStops(t *testing.T) {
	a, _ := flightAgent(t, func(context.Context, container.Container, io.Writer) error { return nil })
	a.Rules.Interval = time.Second
	began, ended := make(chan bool), make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- a.budget.unless(ctx, shedPeriods, func(ctx context.Context) error {
			began <- true
			<-ctx.Done()
			ended <- true
			return nil
		})
	}()
	<-began
	a.budget.set(shedRecordings) // does not end it
	a.budget.set(shedRate)
	<-ended
	if got := a.interval(); got != slowRounds*time.Second {
		t.Errorf("rounds of %v", got)
	}
	a.budget.set(shedRecordings)
	<-began
	cancel()
	<-ended
	if err := <-done; err != nil {
		t.Error(err)
	}

	// Recordings: the most stopped is due only while nothing is dropped.
	a.recorder.due = make(chan dueRecording, 1)
	round := observe.Snapshot{Observations: []observe.Observation{stoppedFor(1, "a", 1)}}
	if a.recorder.round(round); len(a.recorder.due) > 0 {
		t.Error("a recording is due while recordings are dropped")
	}
	a.budget.set(shedNothing)
	if a.recorder.round(round); len(a.recorder.due) == 0 {
		t.Error("no recording is due while nothing is dropped")
	}
}

func TestStatusLearnsWhatIsDropped(t *testing.T) {
	dir := t.TempDir()
	a := &agent{Config: Config{Env: apply.Env{StateDir: dir}, Log: slog.New(slog.DiscardHandler), Rules: policy.Rules{}}}
	if d, err := ReadDropped(dir); d != nil || err != nil {
		t.Error(d, err)
	}
	a.tellDropped(shedPeriods, "2 % of a CPU")
	if d, err := ReadDropped(dir); err != nil || d == nil || !slices.Equal(d.What, []string{"recordings", "periods"}) || d.Why != "2 % of a CPU" {
		t.Error(d, err)
	}
	a.tellDropped(shedNothing, "")
	if d, err := ReadDropped(dir); d != nil || err != nil {
		t.Error(d, err)
	}
}
