package agreement

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Verdict on one figure.
type Verdict struct {
	Key
	Simulated float64 // NaN: nothing was counted
	// Real are the real runs', sorted; NaN: nothing was counted.
	Real   []float64
	Bound  float64
	Agrees bool
}

// Judgement on one draw.
type Judgement struct {
	Seed uint64
	// Verdicts by figure, and by cgroup or workload.
	Verdicts []Verdict
	// Self is, by figure, the share of real runs that agree with the others of this
	// draw: what could be asked of a simulator. SelfAll: on all figures together.
	Self    map[Figure]float64
	SelfAll float64
}

// Judge compares one draw's runs.
func Judge(d Draw, simulated, real []scenario.Outcome) Judgement {
	j := JudgeScenario(d.scenario, simulated, real)
	j.Seed = d.Seed
	return j
}

// JudgeScenario compares a scenario's runs: simulated ones and real ones, at least
// one and two.
func JudgeScenario(s scenario.Scenario, simulated, real []scenario.Outcome) Judgement {
	tick := time.Second / time.Duration(s.Host.HZ)
	j := Judgement{Self: map[Figure]float64{}}
	j.Verdicts = compare(medians(simulated), real, tick)
	share := 1 / float64(len(real))
	for i := range real {
		all := true
		self := compare(values(real[i]), slices.Concat(real[:i], real[i+1:]), tick)
		for _, f := range Figures() {
			if agree(self, f) {
				j.Self[f] += share
			} else {
				all = false
			}
		}
		if all {
			j.SelfAll += share
		}
	}
	return j
}

// Agrees tells whether all cgroups or workloads agree on a figure.
func (j Judgement) Agrees(f Figure) bool { return agree(j.Verdicts, f) }

// Misses are the verdicts that do not agree.
func (j Judgement) Misses() []Verdict {
	return slices.DeleteFunc(slices.Clone(j.Verdicts), func(v Verdict) bool { return v.Agrees })
}

func agree(verdicts []Verdict, f Figure) bool {
	return !slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Figure == f && !v.Agrees })
}

// compare judges every figure that any of the runs has.
func compare(simulated map[Key]float64, real []scenario.Outcome, tick time.Duration) []Verdict {
	runs := make([]map[Key]float64, len(real))
	keys := map[Key]bool{}
	for k := range simulated {
		keys[k] = true
	}
	for i, o := range real {
		runs[i] = values(o)
		for k := range runs[i] {
			keys[k] = true
		}
	}
	var verdicts []Verdict
	for k := range keys {
		v := Verdict{Key: k, Simulated: of(simulated, k)}
		for _, r := range runs {
			v.Real = append(v.Real, of(r, k))
		}
		slices.Sort(v.Real)
		v.Bound = bound(k.Figure, stats.Median(v.Real), tick)
		v.Agrees = v.within()
		verdicts = append(verdicts, v)
	}
	slices.SortFunc(verdicts, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(slices.Index(Figures(), a.Figure), slices.Index(Figures(), b.Figure)), cmp.Compare(a.Of, b.Of))
	})
	return verdicts
}

// of is a value, NaN if it is not there.
func of(values map[Key]float64, k Key) float64 {
	if v, ok := values[k]; ok {
		return v
	}
	return math.NaN()
}

// within is the rule. Where nothing was counted in any real run, or in half of
// them, nothing may be counted in the simulator.
func (v Verdict) within() bool {
	median := stats.Median(v.Real)
	if math.IsNaN(v.Simulated) || math.IsNaN(median) {
		return math.IsNaN(v.Simulated) == math.IsNaN(median)
	}
	low, high := v.Range()
	return math.Abs(v.Simulated-median) <= v.Bound || low <= v.Simulated && v.Simulated <= high
}

// Range is the lowest and the highest of the real runs.
func (v Verdict) Range() (low, high float64) {
	counted := slices.DeleteFunc(slices.Clone(v.Real), math.IsNaN)
	if len(counted) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(counted), slices.Max(counted)
}

// medians of each figure over runs.
func medians(runs []scenario.Outcome) map[Key]float64 {
	each := map[Key][]float64{}
	for _, o := range runs {
		for k, v := range values(o) {
			each[k] = append(each[k], v)
		}
	}
	all := map[Key]float64{}
	for k, v := range each {
		// A figure that most runs lack is none.
		if 2*len(v) > len(runs) {
			all[k] = stats.Median(v)
		}
	}
	return all
}
