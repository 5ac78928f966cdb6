package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"

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

// greedy are as many endless threads as a neighbour's mean width takes, on the CPUs that it used most, from its first
// run on.
func greedy(of []*other) []*other {
	all := slices.Clone(of)
	slices.SortStableFunc(all, func(x, y *other) int { return cmp.Compare(y.sum, x.sum) })
	all = all[:min(len(all), max(1, int(math.Round(meanWidth(of)))))]
	for i, o := range all {
		endless := *o
		endless.steps = []simulate.ReplayStep{o.steps[0], {Kind: simulate.StepRun, For: simulate.Endless}}
		all[i] = &endless
	}
	return all
}

// endless reports whether the runs of a neighbour do not end.
func (o *other) endless() bool { return o.steps[len(o.steps)-1].For == simulate.Endless }

// meanWidth is how many CPUs an owner held on average while it held any.
func meanWidth(of []*other) float64 {
	type run struct{ from, to time.Duration }
	var runs []run
	sum := time.Duration(0)
	for _, o := range of {
		for i := 0; i+1 < len(o.steps); i += 2 { // see flushOther
			runs = append(runs, run{o.steps[i].For, o.steps[i].For + o.steps[i+1].For})
			sum += o.steps[i+1].For
		}
	}
	slices.SortFunc(runs, func(x, y run) int { return cmp.Compare(x.from, y.from) })
	any, end := time.Duration(0), time.Duration(0)
	for _, r := range runs {
		if r.to > end {
			any += r.to - max(r.from, end)
			end = r.to
		}
	}
	return sum.Seconds() / max(any.Seconds(), math.SmallestNonzeroFloat64)
}
