package fix

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// service answers a request every 5 ms of a virtual time, slowly as long as its
// quota is in force.
type service struct {
	now     time.Time
	changed time.Time // when its quota was lifted
	useless bool      // it is slow without a quota, too
	cache   []float64
	fetched time.Time
	asked   []time.Time // since when, each time
}

const requestEvery = 5 * time.Millisecond

// latencies are those of the requests of a time, oldest first.
func (s *service) latencies(from, to time.Time) []float64 {
	var all []float64
	for at := from.Truncate(requestEvery).Add(requestEvery); !at.After(to); at = at.Add(requestEvery) {
		ms := 97.0
		if !s.changed.IsZero() && at.After(s.changed) && !s.useless {
			ms = 12
		}
		chance := rand.New(rand.NewPCG(uint64(at.UnixNano()), 0))
		all = append(all, ms*(1+chance.Float64()/100))
	}
	return all
}

// onVirtualTime puts a service with a latency source behind a fix.
func (b *bench) onVirtualTime(source func(s *service, since time.Time) []float64, timed bool) *service {
	s := &service{now: time.Unix(1_700_000_000, 0)}
	b.env.Apply.Now = func() time.Time { return s.now }
	b.env.Wait = func(ctx context.Context, d time.Duration) error {
		s.now = s.now.Add(d)
		return ctx.Err()
	}
	look := b.env.Observe
	b.env.Observe = func(ctx context.Context, containers []container.Container, window time.Duration) ([]observe.Observation, error) {
		s.now = s.now.Add(window)
		return look(ctx, containers, window)
	}
	b.kernel.Before = func(op cgroupmodel.Op) error {
		if op.Changes() && op.Path == "/busy" && op.File == "cpu.cfs_quota_us" && op.Value == "-1" {
			s.changed = s.now
		}
		return nil
	}
	b.latencies = [][]float64{} // sets the objective
	b.source()
	b.env.Latencies = slo.Source(func(_ context.Context, since time.Time) (slo.Answer, error) {
		s.asked = append(s.asked, since)
		answer := slo.Answer{MS: source(s, since)}
		for i := range answer.MS {
			if timed {
				answer.Began = append(answer.Began, since.Truncate(requestEvery).Add(time.Duration(i+1)*requestEvery))
			}
		}
		return answer, nil
	})
	return s
}

// The source is judged by what it says of the time after the change, whether it
// honours the time that it is told, measures by itself, or looks back by itself
// and declares it. Of one that does not declare it, and of one that does not
// follow the present, the effect is unverified.
func TestSourceMeasuresAfterTheChange(t *testing.T) {
	lookBack := func(s *service, _ time.Time) []float64 { return s.latencies(s.now.Add(-20*time.Second), s.now) }
	cached := func(s *service, since time.Time) []float64 {
		if s.now.Sub(s.fetched) > time.Minute {
			s.cache, s.fetched = lookBack(s, since), s.now
		}
		return s.cache
	}
	for name, tc := range map[string]struct {
		source   func(*service, time.Time) []float64
		lookBack time.Duration
		useless  bool
		verdict  string
		why      string
		asked    int
		timed    bool
	}{
		"looks back, and declares it":    {lookBack, 20 * time.Second, false, verdict.Better, "p99 from", 2, false},
		"looks back, and does not":       {lookBack, 0, false, verdict.Unverified, "--slo-look-back", 3, false},
		"looks back longer than it says": {lookBack, 10 * time.Second, false, verdict.Unverified, "--slo-look-back", 2, false},
		"looks back, to no avail":        {lookBack, 20 * time.Second, true, verdict.NoChange, "p99 from", 2, false},
		"honours the time": {
			func(s *service, since time.Time) []float64 { return s.latencies(since, s.now) }, 0, false, verdict.Better,
			"p99 from", 3, false},
		"honours the time, to no avail": {
			func(s *service, since time.Time) []float64 { return s.latencies(since, s.now) }, 0, true, verdict.NoChange,
			"p99 from", 3, false},
		"honours the time, and prints it": {
			func(s *service, since time.Time) []float64 { return s.latencies(since, s.now) }, 0, false, verdict.Better,
			"p99 from", 2, true},
		"prints the time, to no avail": {
			func(s *service, since time.Time) []float64 { return s.latencies(since, s.now) }, 0, true, verdict.NoChange,
			"p99 from", 2, true},
		"measures by itself": {func(s *service, _ time.Time) []float64 {
			from := s.now
			s.now = s.now.Add(5 * time.Second)
			return s.latencies(from, s.now)
		}, 0, false, verdict.Better, "p99 from", 3, false},
		"keeps an answer for a minute": {cached, 0, false, verdict.Unverified,
			"very same answer after the change as before", 3, false},
		"keeps an answer, and declares too little": {cached, 20 * time.Second, false, verdict.Unverified, "very same answer", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.onVirtualTime(tc.source, tc.timed)
			s.useless = tc.useless
			b.options.Window, b.options.Settle, b.options.LookBack = 5*time.Second, time.Second, tc.lookBack
			b.options.Ask = func(question string) (bool, error) { return question == QuestionApply, nil }
			got, err := Run(t.Context(), b.env, b.options)
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != tc.verdict || got.Kept != (tc.verdict == verdict.Better) || !strings.Contains(got.Judgement.Why, tc.why) {
				t.Errorf("%s, kept %v: %s", got.Verdict, got.Kept, got.Judgement.Why)
			}
			if len(s.asked) != tc.asked {
				t.Fatalf("asked %d times, want %d", len(s.asked), tc.asked)
			}
			if !s.asked[0].Before(s.changed) {
				t.Errorf("before the change it was asked for the time from %v on", s.asked[0])
			}
			for _, since := range s.asked[1:] {
				if !since.After(s.changed) {
					t.Errorf("after the change, at %v, it was asked for the time from %v on", s.changed, since)
				}
			}
			waiting := slices.ContainsFunc(b.said,
				func(text string) bool { return strings.Contains(text, "more: the latency source looks back") })
			if waiting != (tc.lookBack > 0) {
				t.Errorf("said %q", b.said)
			}
			if waited := s.now.Sub(s.changed); waited < tc.lookBack {
				t.Errorf("waited for %v, and it looks back %v", waited, tc.lookBack)
			}
		})
	}
}
