package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
)

// machine is the guest in which a piece is measured.
type machine struct {
	Kernel string `json:"kernel"` // of `lab list`
	CPUs   int    `json:"cpus"`
	K      int    `json:"k"` // how many times slower than the host's its clock runs
}

// kind of a piece.
type kind string

const (
	point     kind = "point"     // a service under a remedy at one load
	recording kind = "recording" // the same, recorded, and what forecast says of it
	real      kind = "scenario"  // a scenario for real
	costs     kind = "costs"     // what a wake-up costs, which the simulator has to know
)

// piece is what is measured and kept at a time. Two pieces that are equal are the same measurement.
type piece struct {
	Machine machine `json:"machine"`
	Kind    kind    `json:"kind"`
	// Edition is that of the shapes and scenarios. A change of what they do counts it up: older pieces then no longer count.
	Edition int `json:"edition"`
	// Of points and recordings.
	Shape  string  `json:"shape,omitempty"`
	Remedy string  `json:"remedy,omitempty"`
	Limit  int     `json:"limit_cpus,omitempty"`
	Share  float64 `json:"share,omitempty"` // of what the limit's CPUs can carry
	// Of scenarios.
	Scenario string  `json:"scenario,omitempty"`
	Seconds  float64 `json:"seconds"`
	Repeat   int     `json:"repeat"` // from 1; the seed of what comes when
}

func (p piece) String() string {
	switch p.Kind {
	case point, recording:
		return fmt.Sprintf("K=%d %s of %s, %s, %.0f %%, repeat %d", p.Machine.K, p.Kind, p.Shape, p.Remedy, 100*p.Share, p.Repeat)
	case real:
		return fmt.Sprintf("K=%d scenario %s, repeat %d", p.Machine.K, p.Scenario, p.Repeat)
	}
	return fmt.Sprintf("K=%d %s, repeat %d", p.Machine.K, p.Kind, p.Repeat)
}

const (
	edition = 1
	// limitCPUs of 16: a container can be four times as wide as its limit.
	limitCPUs = 4
	wideCPUs  = 16
	mainK     = 20
	kernel    = "6.18" // the lab's oldest that has sched_ext
	// pointSeconds and scenarioSeconds are how long each is measured, in guest time: 30 periods.
	pointSeconds, scenarioSeconds = 3, 3
	boundMs                       = 50
)

// levels are the loads at which every shape and remedy is measured, so that figures of different days add up and remedies
// are compared at the same load.
var levels = []float64{0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}

// remedies in the order in which they are measured, the quota first.
var remedies = []string{capacity.Quota, capacity.Burst, capacity.NarrowSchedExt, capacity.Pin, capacity.Period, capacity.Cpuset}

// more are remedies that are measured when the others are.
var more = []string{capacity.Pools}

func machineOf(k int) machine { return machine{kernel, wideCPUs, k} }

func pointOf(k int, shape, remedy string, level, repeat int) piece {
	return piece{machineOf(k), point, edition, shape, remedy, limitCPUs, levels[level], "", pointSeconds, repeat}
}

// missing are the points that can be measured next, in order of worth. They depend on what was measured: each remedy's search
// asks for one load at a time.
func missing(have *records) (all []piece) {
	add := func(p piece) {
		if have.wanted(p) && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	// pass is one repeat of a shape: the next load of each remedy.
	pass := func(shape string, repeat int, names []string) {
		for _, name := range names {
			if level, ok := have.next(mainK, shape, name, repeat); ok {
				add(pointOf(mainK, shape, name, level, repeat))
			}
		}
	}
	// recorded is the plain quota at the highest load at which it kept its objective, or the lowest.
	recorded := func(shape string) {
		if _, ok := have.next(mainK, shape, capacity.Quota, 1); ok {
			return
		}
		met, _ := have.bracket(mainK, shape, capacity.Quota, 1)
		p := pointOf(mainK, shape, capacity.Quota, max(0, met), 1)
		p.Kind = recording
		add(p)
	}
	// compared are the same points at another K, with the same requests: whether slowing is enough.
	compared := func(k int) {
		for _, name := range []string{capacity.Quota, capacity.Burst, capacity.Pin} {
			add(pointOf(k, capacity.Shard, name, comparedLevel, 1))
		}
	}
	pass(capacity.Shard, 1, remedies)
	recorded(capacity.Shard)
	if len(all) > 0 {
		return all
	}
	compared(2 * mainK / 4)
	pass("pool", 1, remedies)
	recorded("pool")
	if len(all) > 0 {
		return all
	}
	for repeat := 2; repeat <= 3; repeat++ {
		pass(capacity.Shard, repeat, remedies)
	}
	pass(capacity.Shard, 1, more)
	compared(2 * mainK)
	if len(all) > 0 {
		return all
	}
	for _, shape := range []string{"pools", "gc", "mixed"} {
		pass(shape, 1, append(slices.Clone(remedies), more...))
		recorded(shape)
	}
	pass("pool", 1, more)
	if len(all) > 0 {
		return all
	}
	for repeat := 2; repeat <= 3; repeat++ {
		for _, shape := range shapes {
			pass(shape, repeat, append(slices.Clone(remedies), more...))
		}
	}
	for repeat := 4; repeat <= 5; repeat++ {
		pass(capacity.Shard, repeat, remedies)
	}
	return all
}

// comparedLevel is where a search begins, so that each remedy has it.
const comparedLevel = 3

// shapes in the page's order.
var shapes = []string{capacity.Shard, "pool", "pools", "gc", "mixed"}

// bracket is the highest level that was met below the lowest one that was missed; -1 and len(levels) where there is none.
func (r *records) bracket(k int, shape, remedy string, repeat int) (met, missed int) {
	met, missed = -1, len(levels)
	for level := range levels {
		got := r.find(pointOf(k, shape, remedy, level, repeat))
		switch {
		case got == nil:
		case !got.Point.Met:
			return met, level
		default:
			met = level
		}
	}
	return met, missed
}

// next is the level that a search asks for; false: it has ended. A first search halves the interval; later ones begin where it ended,
// and go one level up or down.
func (r *records) next(k int, shape, remedy string, repeat int) (int, bool) {
	met, missed := r.bracket(k, shape, remedy, repeat)
	switch {
	case missed-met <= 1:
		return 0, false
	case repeat == 1 || met >= 0 && missed < len(levels):
		return (met + missed) / 2, true
	case met >= 0:
		return met + 1, true
	case missed < len(levels):
		return missed - 1, true
	}
	first, _ := r.bracket(k, shape, remedy, 1)
	return max(0, first), true
}

// knee is the highest load within the objective, as a share of what the limit's CPUs can carry. Between the highest load that was met and
// the lowest that was missed, p99 is taken to grow by equal factors.
type knee struct {
	Share float64
	// AtLeast: no load was missed. AtMost: none was met. Open: loads between are not measured yet, up to Upto.
	AtLeast, AtMost, Open bool
	Upto                  float64
}

// kneeOf is what the points of one repeat say; false: there are none.
func (r *records) kneeOf(k int, shape, remedy string, repeat int) (knee, bool) {
	met, missed := r.bracket(k, shape, remedy, repeat)
	if met < 0 && missed == len(levels) {
		return knee{}, false
	}
	_, open := r.next(k, shape, remedy, repeat)
	switch {
	case missed == len(levels):
		return knee{Share: levels[met], AtLeast: !open, Open: open, Upto: math.Inf(1)}, true
	case met < 0:
		return knee{Share: levels[missed], AtMost: !open, Open: open, Upto: levels[missed]}, true
	case open:
		return knee{Share: levels[met], Open: true, Upto: levels[missed]}, true
	}
	below, above := r.find(pointOf(k, shape, remedy, met, repeat)).Point, r.find(pointOf(k, shape, remedy, missed, repeat)).Point
	at := 0.0
	if below.P99 != nil && above.P99 != nil && *above.P99 > boundMs && *below.P99 > 0 && *below.P99 < *above.P99 {
		at = math.Log(boundMs / *below.P99) / math.Log(*above.P99 / *below.P99)
	}
	return knee{Share: levels[met] + (levels[missed]-levels[met])*min(max(at, 0), 1)}, true
}

// takes is about how long a piece takes on the host.
func (p piece) takes() time.Duration {
	const around = 1.4 // seconds of guest time: start, warming up, the end
	guest := p.Seconds + around
	if p.Kind == recording {
		guest += 2
	}
	if p.Kind == costs {
		guest = 3*p.Seconds + around
	}
	return time.Duration(guest * float64(p.Machine.K) * float64(time.Second))
}

// boots is about how long a guest takes until its first piece.
func (m machine) boots() time.Duration { return 25*time.Second + time.Duration(m.K)*time.Second }

// batch are the pieces for the next guest: those of the first one's machine, as long as there is time; none: too little is left.
func batch(all []piece, left time.Duration) (now []piece) {
	const most = 6 // then the searches ask for other loads
	if len(all) == 0 {
		return nil
	}
	left -= all[0].Machine.boots()
	for _, p := range all {
		if p.Machine != all[0].Machine {
			continue
		}
		if left -= p.takes(); left < 0 || len(now) == most {
			break
		}
		now = append(now, p)
	}
	return now
}
