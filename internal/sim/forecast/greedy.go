package forecast

import (
	"cmp"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// A neighbour below the limit that binds spends the same quota. A recording shows what such a neighbour got, which is no
// more than the quota. One that takes all it gets would take more of a larger limit, and goes on in a narrower one.
//
// Worked example: a pod's quota of 0.8 CPUs is spent in 56 of 56 periods, nearly all of it by two threads of xz. With
// twice the limit they used 1.5 CPUs, and 35 of 55 periods were throttled. A replay of what they had got left no period
// throttled.

const (
	// greedyPeriods is the share of the periods that must be throttled, and greedyPart the part of the CPU time below the
	// limit, for a neighbour to count as one that takes all it gets.
	greedyPeriods = 0.75
	greedyPart    = 0.5
)

// sharesQuota reports whether the children of a cgroup of the scenario spend the quota that binds.
func (a *assembly) sharesQuota(cgroup int) bool {
	for ; cgroup >= 0; cgroup = a.l.recordedScenario.Cgroups[cgroup].Parent {
		if cgroup == a.l.binding {
			return true
		}
	}
	return false
}

// takesAll reports whether a neighbour that used some of the CPU time takes all that the quota gives it. used is that of
// all neighbours below the limit, in ns.
func (a *assembly) takesAll(some, used int64) bool {
	throttled := a.l.recorded.throttledPeriods
	if throttled == nil {
		return false
	}
	periods := a.l.window.Seconds() / a.l.recordedScenario.Cgroups[a.l.binding].Limit.Period.Seconds()
	own := a.l.recorded.cpu.Nanoseconds()
	return float64(*throttled) >= greedyPeriods*periods && float64(some) >= greedyPart*float64(used+own)
}

// width is on how many CPUs an owner ran at once.
type width struct {
	cpus     int
	began    int64 // since when cpus is above 0
	any, sum int64 // ns in which it held any CPU, and CPU time
}

// mean is how many CPUs the owner held on average while it held any.
func (w *width) mean() float64 {
	if w == nil || w.any == 0 {
		return 0
	}
	return float64(w.sum) / float64(w.any)
}

// hold counts a CPU that an owner outside of the container begins to run on.
func (b *builder) hold(c *cpu) {
	if c.owner == recording.Idle || c.held || c.ours {
		return
	}
	w := b.widths[c.owner]
	if w == nil {
		if len(b.widths) == maxThreads {
			return
		}
		w = &width{}
		b.widths[c.owner] = w
	}
	if w.cpus == 0 {
		w.began = b.now
	}
	w.cpus++
	c.held = true
}

// release ends what hold began.
func (b *builder) release(c *cpu) {
	if !c.held {
		return
	}
	w := b.widths[c.owner]
	w.sum += b.now - c.since
	w.cpus--
	if w.cpus == 0 {
		w.any += b.now - w.began
	}
	c.held = false
}

// greedy are as many endless threads as a neighbour's mean width takes, on the CPUs that it used most, from its first
// run on.
func greedy(others []*other, mean float64) []*other {
	all := slices.Clone(others)
	slices.SortStableFunc(all, func(x, y *other) int { return cmp.Compare(y.sum, x.sum) })
	all = all[:min(len(all), max(1, int(math.Round(mean))))]
	for i, o := range all {
		endless := *o
		endless.steps = []simulate.ReplayStep{o.steps[0], {Kind: simulate.StepRun, For: simulate.Endless}}
		all[i] = &endless
	}
	return all
}

// endless reports whether the runs of a neighbour do not end.
func (o *other) endless() bool { return o.steps[len(o.steps)-1].For == simulate.Endless }
