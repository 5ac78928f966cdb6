package forecast

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/sim/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// ranOn is a neighbour that runs for so long every 100 ms on a CPU, after a time.
func ranOn(cpu int32, after, length time.Duration) *other {
	o := &other{otherKey: otherKey{9, cpu}}
	for i := range 10 {
		o.steps = append(o.steps, simulate.ReplayStep{Kind: simulate.StepUntil, For: after + time.Duration(i)*100*ms}, simulate.ReplayStep{Kind: simulate.StepRun, For: length})
		o.sum += length.Nanoseconds()
	}
	return o
}

// As many threads go on for ever as the neighbour ran at once, where it ran most, from when it began.
func TestGreedy(t *testing.T) {
	for name, test := range map[string]struct {
		of   []*other
		cpus []int32
	}{
		"one thread":            {[]*other{ranOn(0, 0, 80*ms)}, []int32{0}},
		"one thread that moves": {[]*other{ranOn(0, 0, 30*ms), ranOn(1, 30*ms, 50*ms)}, []int32{1}},
		"two at once":           {[]*other{ranOn(0, ms, 40*ms), ranOn(1, ms, 40*ms)}, []int32{0, 1}},
		"two of three CPUs":     {[]*other{ranOn(0, 0, 40*ms), ranOn(1, 0, 20*ms), ranOn(2, 20*ms, 30*ms)}, []int32{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			got := greedy(test.of)
			if len(got) != len(test.cpus) {
				t.Fatalf("%d threads at a width of %.2f", len(got), meanWidth(test.of))
			}
			for i, o := range got {
				if o.cpu != test.cpus[i] || !o.endless() || len(o.steps) != 2 || o.steps[0].For > 30*ms {
					t.Errorf("thread %d: CPU %d, %+v", i, o.cpu, o.steps)
				}
			}
			for _, o := range test.of {
				if o.endless() || len(o.steps) != 20 {
					t.Error("the recorded runs have changed")
				}
			}
		})
	}
}

// A neighbour takes all where the quota that it shares is mostly spent, and mostly by it.
func TestTakesAll(t *testing.T) {
	limit := bandwidth.Limit{Quota: 80 * ms, Period: 100 * ms}
	for _, test := range []struct {
		throttled  *uint64
		some, used time.Duration
		want       bool
	}{
		{new(uint64(9)), 700 * ms, 700 * ms, true},
		{new(uint64(5)), 700 * ms, 700 * ms, false},
		{new(uint64(9)), 300 * ms, 700 * ms, false},
		{nil, 700 * ms, 700 * ms, false},
	} {
		l := &Load{window: time.Second, recorded: recordedFigures{throttledPeriods: test.throttled, cpu: 100 * ms}}
		l.recordedScenario.Cgroups = []scenario.Cgroup{{Parent: -1, Limit: limit}, {Parent: 0}, {Parent: -1}}
		a := &assembly{l: l}
		if got := a.takesAll(test.some.Nanoseconds(), test.used.Nanoseconds()); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
		if !a.sharesQuota(0) || !a.sharesQuota(1) || a.sharesQuota(2) || a.sharesQuota(-1) {
			t.Error("the quota binds what is below it")
		}
	}
}
