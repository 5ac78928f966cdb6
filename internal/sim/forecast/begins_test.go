package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// What is left of a bucket before its next refill is what the load does not use, and nothing of one that is always used up.
func TestLeft(t *testing.T) {
	b := bucket{every: time.Second, limit: 1, most: 2}
	for _, c := range []struct {
		used float64
		next time.Duration
		want float64
	}{
		{0.6, 0, 1.4}, {0.6, 500 * time.Millisecond, 1.7}, {0, 0, 2}, {1, 0, 0}, {1.5, 0, 0}, {1.5, 500 * time.Millisecond, 0},
	} {
		o := offered{cpu: make([]float64, 600)}
		for i := range o.cpu {
			o.cpu[i] = c.used * moment.Seconds()
		}
		if got := o.left(b, 1, c.next); got < c.want-0.02 || got > c.want+0.02 {
			t.Errorf("%v CPUs used of 1, %v before the next refill: %.2f s left, want %.2f", c.used, c.next, got, c.want)
		}
	}
	nothing := offered{}
	if got := nothing.left(b, 1, 0); got != 2 {
		t.Errorf("of an empty recording %v", got)
	}
}

// together is two threads that each want some CPU time in every 100 ms of 6 s, with a limit of 1 CPU.
func together(work time.Duration) recording.Recording {
	s := rt.New(8).Limit(100*ms, 100*ms).Process("java")
	w := s.Threads("worker", 2)
	s.Repeat(60, 100*ms, func(at time.Duration) { s.Work(at, work, w...) })
	return s.Run(6 * time.Second)
}

// A long burst has nothing saved where the limit is always used up, and then stops what it stops. Where less is used it stops nothing.
func TestALongBurstBeginsAsItIsLeft(t *testing.T) {
	for work, stops := range map[time.Duration]bool{60 * ms: true, 30 * ms: false} {
		l := loadOf(t, together(work))
		s, err := l.scenarioWith(Remedy{Name: Burst, Burst: time.Second, Period: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, holds := l.begins(&s, nil, trial{load: 1}); stops != (holds[l.container] < 200*ms) {
			t.Errorf("%v of 100 ms by two threads: the burst begins with %v", work, holds[l.container])
		}
		for seed := range uint64(5) {
			for _, r := range []Remedy{{Name: Burst, Burst: time.Second, Period: time.Second}, {Name: Period, Period: time.Second}} {
				got, err := l.run(trial{remedy: r, load: 1, seed: seed})
				if err != nil || got.refused != nil {
					t.Fatal(err, got.refused)
				}
				if (got.stopped > 100*ms) != stops {
					t.Errorf("%v of 100 ms by two threads, %+v: stopped for %v", work, r, got.stopped)
				}
			}
		}
	}
}

// A replay begins with what its limit holds: nothing until the next refill, or all that it can save.
func TestReplayHolds(t *testing.T) {
	l := loadOf(t, together(30*ms))
	s, err := l.scenarioWith(Remedy{Name: Burst, Burst: time.Second, Period: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		holds    []time.Duration
		from, to float64
	}{{nil, 0, 0}, {withTime(nil, l.container, 0), 0.4, 0.6}, {withTime(nil, l.container, time.Hour), 0, 0}} {
		replay := l.replay
		replay.Phase, replay.Holds = withTime(nil, l.container, 500*ms), c.holds
		r, err := simulate.RunReplay(s, &replay, simulate.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if stopped := *r.Outcome.Cgroups[s.Cgroups[l.container].Name].StoppedSeconds; stopped < c.from || stopped > c.to {
			t.Errorf("%v held: stopped for %.2f s", c.holds, stopped)
		}
	}
}

// Before 6.4 the kernel draws no phase for a group, but a recording begins at any moment of its periods.
func TestPeriodsBeginAtAnyMoment(t *testing.T) {
	r := bursts()
	r.Header.Host.Kernel = "5.15.0"
	l := loadOf(t, r)
	stopped := map[string]bool{}
	for seed := range uint64(20) {
		got, err := l.run(trial{remedy: Remedy{Name: Period, Period: 50 * ms}, load: 1, seed: seed})
		if err != nil || got.refused != nil {
			t.Fatal(err, got.refused)
		}
		stopped[fmt.Sprint(got.stopped.Round(ms))] = true
	}
	if len(stopped) < 5 {
		t.Errorf("20 seeds stop for %v", stopped)
	}
}

// A distribution's kernel that has the rules of a later one says so.
func TestSlicesThatDoNotExpire(t *testing.T) {
	r := bursts()
	r.Header.Host.Kernel = "4.18.0"
	for _, expire := range []bool{true, false} {
		r.Header.Features.SlicesExpire = &expire
		host, err := hostOf(&r.Header)
		if err != nil {
			t.Fatal(err)
		}
		if got := host.Rules.Has(bandwidth.Since5_4); got == expire {
			t.Errorf("slices expire: %v; rules of 5.4: %v", expire, got)
		}
	}
}

// Sleeps of no time do not keep a replay at one moment.
func TestSleepsOfNoTime(t *testing.T) {
	th := thread{steps: make([]simulate.ReplayStep, 6)}
	for i := range th.steps {
		th.timerSleeps = append(th.timerSleeps, timerSleep{step: i, at: int64(i*i) * 1e6})
	}
	th.makeRelative()
	for _, s := range th.steps {
		if s.Kind != simulate.StepSleep || s.For <= 0 {
			t.Errorf("%+v", s)
		}
	}
}
