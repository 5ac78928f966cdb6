package forecast

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// ranOn is a neighbour that runs for so long every 100 ms on a CPU, after a time.
func ranOn(cpu int32, after, length time.Duration) *other {
	o := &other{otherKey: otherKey{9, cpu}}
	for i := range 10 {
		o.steps = append(o.steps, simulate.ReplayStep{Kind: simulate.StepUntil, For: after + time.Duration(i)*100*ms},
			simulate.ReplayStep{Kind: simulate.StepRun, For: length})
		o.sum += length.Nanoseconds()
	}
	return o
}

// As many threads go on for ever as the neighbour ran at once, where it ran most, from when it began.
func TestGreedy(t *testing.T) {
	for name, test := range map[string]struct {
		of   []*other
		mean float64
		cpus []int32
	}{
		"one thread":            {[]*other{ranOn(0, 0, 80*ms)}, 1, []int32{0}},
		"one thread that moves": {[]*other{ranOn(0, 0, 30*ms), ranOn(1, 30*ms, 50*ms)}, 1, []int32{1}},
		"two at once":           {[]*other{ranOn(0, ms, 40*ms), ranOn(1, ms, 40*ms)}, 1.7, []int32{0, 1}},
		"two of three CPUs":     {[]*other{ranOn(0, 0, 40*ms), ranOn(1, 0, 20*ms), ranOn(2, 20*ms, 30*ms)}, 1.6, []int32{0, 2}},
		"not known how wide":    {[]*other{ranOn(0, 0, 40*ms), ranOn(1, 0, 20*ms)}, 0, []int32{0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := greedy(test.of, test.mean)
			if len(got) != len(test.cpus) {
				t.Fatalf("%d threads at a width of %.2f", len(got), test.mean)
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

// The width of an owner is that of the moments at which it holds a CPU, however its runs are cut into pieces.
func TestWidthOfAnOwner(t *testing.T) {
	const one, two = recording.FirstOwner, recording.FirstOwner + 1
	type hold struct {
		at    time.Duration
		cpu   int
		owner uint32
	}
	for name, test := range map[string]struct {
		holds []hold
		want  float64 // of owner one, at 100 ms
	}{
		"never seen":                 {nil, 0},
		"to the end":                 {[]hold{{0, 0, one}}, 1},
		"by turns":                   {[]hold{{0, 0, one}, {50 * ms, 0, two}, {50 * ms, 1, one}}, 1},
		"two at once, half the time": {[]hold{{0, 0, one}, {50 * ms, 1, one}}, 1.5},
		"two at once in pieces": {[]hold{
			{0, 0, one}, {0, 1, one}, {10 * ms, 1, two}, {20 * ms, 1, one}, {30 * ms, 0, two}, {40 * ms, 0, one},
		}, 1.8},
		"idle between": {[]hold{{0, 0, one}, {0, 1, one}, {50 * ms, 0, recording.Idle}, {50 * ms, 1, recording.Idle}}, 2},
	} {
		b := &builder{widths: map[uint32]*width{}}
		cpus := []*cpu{{owner: recording.Idle}, {owner: recording.Idle}}
		for _, h := range test.holds {
			b.now = h.at.Nanoseconds()
			c := cpus[h.cpu]
			b.release(c)
			*c = cpu{owner: h.owner, since: b.now}
			b.hold(c)
		}
		b.now = (100 * ms).Nanoseconds()
		for _, c := range cpus {
			b.release(c)
		}
		if got := b.widths[one].mean(); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
