package fix

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
)

// bySetting are the latencies of requests of a time, oldest first: what the user measures while the quota alone is in
// force, a burst or anything
// else.
func (b *bench) bySetting(left, burst, other float64) func(*service, time.Time) []float64 {
	return func(s *service, since time.Time) []float64 {
		took := other
		read := func(file string) string {
			value, err := b.kernel.Read(cgroup.CPU, "/busy", file)
			if err != nil {
				b.t.Fatal(err)
			}
			return strings.TrimSpace(value)
		}
		switch {
		case read("cpu.cfs_burst_us") != "0":
			took = burst
		case read("cpu.cfs_quota_us") == "100000" && read("cpu.cfs_period_us") == "100000":
			took = left
		}
		all := s.latencies(since, s.now)
		for i := range all {
			chance := rand.New(rand.NewPCG(uint64(since.Add(time.Duration(i)*requestEvery).UnixNano()), 1))
			all[i] = took * (1 + chance.Float64()/10)
		}
		return all
	}
}

// The user's own latencies judge turns as recorded requests do, whether the source prints times, honours the time that
// it is told, or declares
// how far it looks back. No forecast is needed for it.
func TestTurnsByTheSource(t *testing.T) {
	for name, c := range map[string]struct {
		burst, other float64
		timed        bool
		lookBack     time.Duration
		wrap         func(func(*service, time.Time) []float64) func(*service, time.Time) []float64
		objective    time.Duration
		remedy       string
		trial        bool
		err          string
	}{
		"a burst is best":             {burst: 12, other: 60, remedy: string(remedy.Burst), trial: true},
		"a burst is best, with times": {burst: 12, other: 60, timed: true, remedy: string(remedy.Burst), trial: true},
		"something else is best":      {burst: 90, other: 12, remedy: "-burst", trial: true},
		"nothing is better":           {burst: 97, other: 130, trial: true},
		"it looks back, and declares it": {burst: 12, other: 60, lookBack: 10 * time.Second,
			remedy: string(remedy.Burst), trial: true},
		"it looks back longer than turns of the budget": {burst: 12, other: 60, lookBack: time.Minute},
		"it is met": {burst: 12, other: 60, objective: 200 * time.Millisecond,
			err: ErrObjectiveMet.Error()},
		"it keeps its answer": {burst: 12, other: 60, trial: true, err: "very same answer",
			wrap: func(source func(*service, time.Time) []float64) func(*service, time.Time) []float64 {
				var kept []float64
				return func(s *service, since time.Time) []float64 {
					if kept == nil {
						kept = source(s, since)
					}
					return kept
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			source := b.bySetting(97, c.burst, c.other)
			if c.wrap != nil {
				source = c.wrap(source)
			}
			s := b.onVirtualTime(source, c.timed)
			before := b.left()
			b.options.Wish = policy.Wish{Auto: true, Judged: true}
			b.options.Window, b.options.Settle, b.options.LookBack = 5*time.Second, time.Second, c.lookBack
			b.options.Budget, b.options.Yes, b.options.OnlyIfMissed = 2*time.Minute, true, true
			if c.objective > 0 {
				b.options.Objective = objective.Objective{Quantile: 0.99, Bound: c.objective}
			}
			began := s.now
			got, err := Run(t.Context(), b.env, b.options)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || got.Kept || len(before.Diff(b.left())) > 0 {
					t.Fatalf("%v, want %q; kept %v, left %q", err, c.err, got.Kept, before.Diff(b.left()))
				}
				if unmeasured := errors.As(err, new(*NotMeasured)); unmeasured != c.trial {
					t.Errorf("not measured: %v", unmeasured)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got.Trial != nil) != c.trial {
				t.Fatalf("trial %+v", got.Trial)
			}
			if !c.trial {
				return
			}
			kept := c.remedy != ""
			if got.Kept != kept || kept && got.Verdict != verdict.Better || c.remedy == "-burst" && got.Remedy == string(remedy.Burst) ||
				kept && c.remedy != "-burst" && got.Remedy != c.remedy {
				t.Errorf("%s: %s, kept %v: %s", got.Remedy, got.Verdict, got.Kept, got.Why)
			}
			if rows := got.Trial.Rows; got.Trial.Of != OfLatencies || *rows[0].MeasuredMs < 97 ||
				*rows[0].MeasuredMs > 107 || rows[0].ForecastMs != nil {
				t.Errorf("%+v", got.Trial)
			}
			if kept && (got.Before.P99Ms == nil || got.After.P99Ms == nil || got.ObjectiveMet == nil || !*got.ObjectiveMet) {
				t.Errorf("before %+v, after %+v, met %v", got.Before, got.After, got.ObjectiveMet)
			}
			if took := s.now.Sub(began); took > 3*b.options.Budget {
				t.Errorf("it took %v", took)
			}
			for _, since := range s.asked {
				if !since.After(began) && since != s.asked[0] {
					t.Errorf("asked for the time since %v", since)
				}
			}
		})
	}
}
