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
	// Steady: a CPU is as fast while the others are idle as while all are busy.
	Steady bool `json:"steady,omitempty"`
}

// kind of a piece.
type kind string

const (
	point kind = "point" // a service under a remedy at one load
	fixed kind = "fix"   // what fix does to a service at one load

	// Kinds of which there are records, but no code to measure more.
	recorded kind = "recording" // a point, recorded, and what forecast says of it
	ran      kind = "scenario"  // a scenario for real
	narrowed kind = "narrow"    // a figure of the scheduler of narrow by itself
	paid     kind = "costs"     // what a wake-up costs, which the simulator has to know
)

// piece is what is measured and kept at a time. Two pieces that are equal are the same measurement.
type piece struct {
	Machine machine `json:"machine"`
	Kind    kind    `json:"kind"`
	// Edition is that of the shapes. A change of what they do counts it up: older pieces then no longer count.
	Edition int     `json:"edition"`
	Shape   string  `json:"shape,omitempty"`
	Remedy  string  `json:"remedy,omitempty"`
	Limit   int     `json:"limit_cpus,omitempty"`
	Share   float64 `json:"share,omitempty"` // of what the limit's CPUs can carry
	// Scenario is the name of what ran, or of narrow's figure.
	Scenario string  `json:"scenario,omitempty"`
	Seconds  float64 `json:"seconds"`
	Repeat   int     `json:"repeat"` // from 1; the seed of what comes when
	// Setting is fullHost, or one of those that are no longer measured; "": nothing else runs, and all is as usual.
	Setting string `json:"setting,omitempty"`
	// Times is how many times the requests of its case a real service gets.
	Times float64 `json:"times,omitempty"`
}

func (p piece) String() string {
	if p.Kind == sized || p.Kind == served {
		return fmt.Sprintf("%d CPUs, K=%d %s of %s, %s, %g times its requests, round %d", p.Machine.CPUs, p.Machine.K, p.Kind,
			p.Shape, p.Remedy, p.Times, p.Repeat)
	}
	changed := ""
	if p.Setting != "" {
		changed = ", " + p.Setting
	}
	return fmt.Sprintf("%d CPUs, K=%d %s of %s, %s%s, %.0f %%, repeat %d", p.Machine.CPUs, p.Machine.K, p.Kind, p.Shape,
		p.Remedy, changed, 100*p.Share, p.Repeat)
}

const (
	edition = 1
	kernel  = "6.18" // the lab's oldest that has sched_ext
	// pointSeconds is how long a point is measured, in guest time: 30 periods. Of a longer period it has longPeriods at least.
	pointSeconds, longPeriods = 3, 12
	boundMs                   = 50
)

// host is a guest with a container's limit on it. The container can be four times as wide as its limit on each.
type host struct{ CPUs, Limit, K int }

// The hosts. On the small one a piece takes half as long, so the whole grid is measured there. Where load balancing over many
// CPUs counts, only the larger ones tell.
var (
	small  = host{8, 2, 10}
	wide   = host{16, 4, 20}
	widest = host{32, 8, 40}
	// largest has a container of 16 CPUs, near those of published findings.
	largest = host{64, 16, 80}
	// patient is the small one at a K at which a CPU is as fast while all are busy as one of the small host's is while no other is.
	patient = host{small.CPUs, small.Limit, 5 * small.K}
	// faster and slower are the wide one at other K.
	faster, slower = host{wide.CPUs, wide.Limit, wide.K / 2}, host{wide.CPUs, wide.Limit, 2 * wide.K}
)

// hosts are all of them.
func hosts() []host { return []host{small, patient, faster, wide, slower, widest, largest} }

func (h host) machine() machine { return machine{Kernel: kernel, CPUs: h.CPUs, K: h.K} }

// levels are the loads at which every shape and remedy is measured, so that figures of different days add up and remedies
// are compared at the same load.
var levels = []float64{0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}

// longCredit is narrow by sched_ext with a credit of 1 s for each CPU of the limit, five times the default.
const longCredit = "narrow-sched_ext-long"

// noCredit is narrow by sched_ext that is at no moment wider than its limit.
const noCredit = "narrow-sched_ext-none"

// remedies in the order in which they are measured, the quota first.
var remedies = []string{capacity.Quota, capacity.Burst, capacity.NarrowSchedExt, capacity.Pin, capacity.Period, capacity.Cpuset}

// more are remedies that are measured when the others are.
var more = []string{capacity.Pools, longCredit, capacity.Budget, capacity.Burst1s, capacity.Burst300, capacity.Weight}

// secondsOf is how long a point of a remedy is measured.
func secondsOf(remedy string) float64 {
	switch remedy {
	case capacity.Burst1s:
		return longPeriods
	case capacity.Burst300:
		return longPeriods * 0.3
	}
	return pointSeconds
}

// allRemedies are those of the grid.
func allRemedies() []string { return append(slices.Clone(remedies), more...) }

func pointOf(h host, shape, remedy string, level, repeat int) piece {
	return piece{Machine: h.machine(), Kind: point, Edition: edition, Shape: shape, Remedy: remedy, Limit: h.Limit, Share: levels[level],
		Seconds: secondsOf(remedy), Repeat: repeat}
}

// stage is a part of the plan, whose pieces are measured before those of the next one.
type stage struct {
	kind     kind
	host     host
	repeat   int
	shapes   []string
	remedies []string // of points
	// loads are the levels of points; none: each remedy's search asks for one at a time.
	loads []int
	// full: every point is measured beside a full host too.
	full bool
}

// next are the stage's pieces that can be measured now. They depend on what was measured.
func (s stage) next(have *records) (pieces []piece) {
	for _, shape := range s.shapes {
		if shape == capacity.SmallBursts && s.host.Limit == small.Limit {
			continue // it is the shard there
		}
		for _, level := range s.loads {
			if s.kind == fixed {
				pieces = append(pieces, fixedOf(s.host, shape, level, s.repeat))
			}
			for _, name := range s.remedies {
				pieces = append(pieces, pointOf(s.host, shape, name, level, s.repeat))
				if s.full {
					pieces = append(pieces, besideOthers(s.host, shape, name, level, s.repeat))
				}
			}
		}
		if s.loads != nil {
			continue
		}
		for _, name := range s.remedies {
			if level, ok := have.next(s.host, shape, name, s.repeat); ok {
				pieces = append(pieces, pointOf(s.host, shape, name, level, s.repeat))
			}
		}
	}
	return pieces
}

// searched tells whether the plan searches a remedy's highest load; else it has some loads, or none.
func searched(h host, shape, remedy string) bool {
	return slices.ContainsFunc(stages(), func(s stage) bool {
		return s.kind == point && s.loads == nil && s.host == h && slices.Contains(s.shapes, shape) && slices.Contains(s.remedies, remedy)
	})
}

// pinned are exclusive CPUs as they are, and with pools that are sized by them, as a program does that asks for its CPUs when it starts.
var pinned = []string{capacity.Quota, capacity.Pin, capacity.PinPools}

// bounded are the best of the host's remedies, beside the quota.
var bounded = []string{capacity.Quota, capacity.Burst, capacity.NarrowSchedExt, longCredit, capacity.Burst1s}

// converging are the remedies that are measured at several K.
var converging = []string{capacity.Quota, capacity.Burst, capacity.Pin}

// few are the remedies that are compared where a piece is dear.
var few = []string{capacity.Quota, capacity.Burst, capacity.NarrowSchedExt, capacity.Pin}

// longest is the burst in the longest period, whose pieces take four times as long, beside what it should come to.
var longest = []string{capacity.Burst1s, capacity.Weight}

// sizes are the hosts by which it is told whether size decides what a width without credit is worth.
var sizes = []host{small, wide, widest, largest}

// widths are what is compared there: no more than the limit at a moment, and more on credit, beside the quota and no limit.
var widths = []string{capacity.Quota, noCredit, capacity.NarrowSchedExt, capacity.Weight}

// stages are the plan, in order of worth: each figure of the page once before any is measured again.
func stages() []stage {
	all, shard, both := allRemedies(), []string{capacity.Shard}, []string{"pools", "mixed"}
	one, two := []int{comparedLevel}, []int{comparedLevel, comparedLevel + 2}
	stages := []stage{
		{kind: point, host: wide, repeat: 1, shapes: shard, remedies: remedies},
		{kind: point, host: small, repeat: 1, shapes: both, remedies: all},
		{kind: point, host: wide, repeat: 1, shapes: []string{"pools"}, remedies: few},
		{kind: point, host: small, repeat: 1, shapes: shard, remedies: all, loads: two},
		{kind: point, host: small, repeat: 1, shapes: shard, remedies: predictable, loads: one, full: true},
		{kind: point, host: patient, repeat: 1, shapes: shard, remedies: bounding, loads: one, full: true},
		{kind: fixed, host: small, repeat: 1, shapes: append(slices.Clone(both), capacity.Shard, "pool", "gc",
			capacity.PoolsGC), loads: one},
		{kind: point, host: faster, repeat: 1, shapes: shard, remedies: converging, loads: one},
		{kind: point, host: slower, repeat: 1, shapes: shard, remedies: converging, loads: one},
		{kind: point, host: patient, repeat: 1, shapes: shard, remedies: []string{capacity.Quota}, loads: one},
		{kind: point, host: widest, repeat: 1, shapes: shard, remedies: few, loads: one},
		{kind: point, host: small, repeat: 1, shapes: []string{capacity.PoolsGC}, remedies: bounded},
		{kind: point, host: small, repeat: 1, shapes: []string{capacity.Shard, "pools"}, remedies: pinned, loads: two},
		{kind: point, host: wide, repeat: 1, shapes: []string{capacity.Shard, "pools"}, remedies: pinned, loads: two},
		{kind: point, host: wide, repeat: 1, shapes: []string{capacity.Shard, "pools"}, remedies: longest, loads: one},
		{kind: point, host: small, repeat: 1, shapes: []string{"pool", "gc"}, remedies: all, loads: two},
	}
	for _, of := range sizes {
		stages = append(stages, stage{kind: point, host: of, repeat: 1, shapes: sizedBursts, remedies: widths, loads: one})
	}
	for _, again := range []int{2, 3} {
		stages = append(stages,
			stage{kind: point, host: small, repeat: again, shapes: both, remedies: all},
			stage{kind: point, host: wide, repeat: again, shapes: shard, remedies: few})
	}
	return stages
}

// missing are the pieces that can be measured next: those of the first stage that has some.
func missing(have *records) (pieces []piece) {
	for _, s := range stages() {
		for _, p := range s.next(have) {
			if have.wanted(p) && !slices.Contains(pieces, p) {
				pieces = append(pieces, p)
			}
		}
		if len(pieces) > 0 {
			return pieces
		}
	}
	return nil
}

// comparedLevel is where a search begins, so that each remedy has it.
const comparedLevel = 3

// shapes in the page's order.
var shapes = []string{capacity.Shard, "pool", "pools", "gc", capacity.PoolsGC, "mixed"}

// sizedBursts are shards whose bursts grow with the limit, and whose bursts do not. With a limit of 2 both are the same.
var sizedBursts = []string{capacity.Shard, capacity.SmallBursts}

// bracket is the highest level that was met below the lowest one that was missed; -1 and len(levels) where there is none.
func (r *records) bracket(h host, shape, remedy string, repeat int) (met, missed int) {
	met, missed = -1, len(levels)
	for level := range levels {
		got := r.find(pointOf(h, shape, remedy, level, repeat))
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
func (r *records) next(h host, shape, remedy string, repeat int) (int, bool) {
	met, missed := r.bracket(h, shape, remedy, repeat)
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
	first, _ := r.bracket(h, shape, remedy, 1)
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

// exact tells whether it lies between two loads of the grid.
func (k knee) exact() bool { return !k.AtLeast && !k.AtMost && !k.Open }

// bounds are from what to what it lies: 0 or infinity where nothing bounds it.
func (k knee) bounds() (low, high float64) {
	switch {
	case k.AtMost || k.Open && k.Share == k.Upto: // none was met
		return 0, k.Share
	case k.AtLeast:
		return k.Share, math.Inf(1)
	case k.Open:
		return k.Share, k.Upto
	}
	return k.Share, k.Share
}

// kneeOf is what the points of one repeat say; false: there are none.
func (r *records) kneeOf(h host, shape, remedy string, repeat int) (knee, bool) {
	met, missed := r.bracket(h, shape, remedy, repeat)
	if met < 0 && missed == len(levels) {
		return knee{}, false
	}
	_, open := r.next(h, shape, remedy, repeat)
	switch {
	case missed == len(levels):
		return knee{Share: levels[met], AtLeast: !open, Open: open, Upto: math.Inf(1)}, true
	case met < 0:
		return knee{Share: levels[missed], AtMost: !open, Open: open, Upto: levels[missed]}, true
	case open:
		return knee{Share: levels[met], Open: true, Upto: levels[missed]}, true
	}
	below, above := r.find(pointOf(h, shape, remedy, met, repeat)).Point, r.find(pointOf(h, shape, remedy, missed, repeat)).Point
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
	if p.Remedy == capacity.Budget {
		guest += capacity.Learns.Seconds()
	}
	if p.Kind == sized || p.Kind == served {
		const around = 3 // the client's start, and what it waits for
		guest = servedWarm.Seconds() + p.Seconds + around
	}
	if p.Kind == fixed {
		const usual = 40 // of the bound: a look and the try that helps
		guest = usual
	}
	return time.Duration(guest * float64(p.Machine.K) * float64(time.Second))
}

// boots is about how long a guest takes until its first piece.
func (m machine) boots() time.Duration {
	if m.Steady { // one CPU boots, and starts a service; both are instructions, of which K makes no more
		const booted, started = 35 * time.Second, 60 * time.Second
		return booted + started + 2*time.Duration(m.K)*time.Second
	}
	return 25*time.Second + time.Duration(m.K)*time.Second
}

// mostOfGuest is how many pieces a guest measures: then the searches ask for other loads.
const mostOfGuest = 6

// batch are the pieces for the next guest: those of the first one's machine, as long as there is time; none: too little is left.
func batch(pieces []piece, left time.Duration) (now []piece) {
	if len(pieces) == 0 {
		return nil
	}
	left -= pieces[0].Machine.boots()
	for _, p := range pieces {
		if p.Machine != pieces[0].Machine {
			continue
		}
		if p.Machine.Steady && (p.Shape != pieces[0].Shape || p.Repeat != pieces[0].Repeat || p.Kind != pieces[0].Kind) {
			break // a round of one service has a guest of its own
		}
		if left -= p.takes(); left < 0 || len(now) == mostOfGuest && !p.Machine.Steady {
			break
		}
		now = append(now, p)
	}
	return now
}
