package agreement

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Plausible judges a single short real run, of which chance decides much. A figure
// Agrees where it is within the bound of the simulated median, or within the range of
// the simulated runs. They should be many.
func Plausible(d Draw, simulated []scenario.Outcome, real scenario.Outcome) []Verdict {
	tick := time.Second / time.Duration(d.scenario.Host.HZ)
	seeds := map[Key][]float64{}
	for _, o := range simulated {
		for k, v := range values(o) {
			seeds[k] = append(seeds[k], v)
		}
	}
	verdicts := compare(medians(simulated), []scenario.Outcome{real}, tick)
	for i := range verdicts {
		v := &verdicts[i]
		if of := seeds[v.Key]; len(of) > 0 && slices.Min(of) <= v.Real[0] && v.Real[0] <= slices.Max(of) {
			v.Agrees = true
		}
	}
	return verdicts
}

// Bias is how much more CPU real runs use than simulated ones: the median of all
// cgroups, as a share. One draw leaves much to chance; a wrong rule shows in most.
func Bias(verdicts []Verdict) float64 {
	var ratios []float64
	for _, v := range verdicts {
		if v.Figure == Use && v.Simulated > 0 {
			ratios = append(ratios, stats.Median(v.Real)/v.Simulated)
		}
	}
	if len(ratios) == 0 {
		return math.NaN()
	}
	return stats.Median(ratios) - 1
}
