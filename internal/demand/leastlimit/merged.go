package leastlimit

import (
	"math"
	"slices"
)

// TwiceNeeds is how much more is needed by a container that does what two such do, by the same rule as [Demand.Least]:
// 1 to 2. bound is as there.
//
// What two want at the same time is taken to be independent of each other: the levels of both together are those of
// either, for the product of the shares of the time. The ratio is of the same rule for both, so that what the rule is
// off by in both drops out.
func (d *Demand) TwiceNeeds(bound float64) float64 {
	single := d.Least(bound).Safe
	if single == 0 {
		return 1
	}
	two := Demand{Width: twice(d.levels()), WidestMean: 2 * d.WidestMean, AllowedCPUs: 2 * d.AllowedCPUs,
		StoppedSeconds: 1}
	return min(2, max(1, two.Least(bound).Safe/single))
}

// twice are the levels of two independent containers, over as much time as those of one.
func twice(once []Level) []Level {
	total := 0.0
	for _, l := range once {
		total += float64(l.Microseconds)
	}
	sums := map[int32]float64{}
	for _, a := range once {
		for _, b := range once {
			sums[a.CPUs+b.CPUs] += float64(a.Microseconds) * float64(b.Microseconds) / total
		}
	}
	var levels []Level
	for cpus, us := range sums {
		levels = append(levels, Level{cpus, int64(math.Round(us))})
	}
	slices.SortFunc(levels, func(a, b Level) int { return int(a.CPUs - b.CPUs) })
	return levels
}

// Merged is the least limit of a container that does what so many do which need a limit of least CPUs each: above 1
// several are one, below 1 one is parted. twice is TwiceNeeds, mean what each uses on average in its busiest time.
//
// What is needed grows by the same factor with each doubling; a part needs at least its mean, and at most what the
// whole does.
func Merged(least, mean, containers, twice float64) float64 {
	return max(containers*mean, least*math.Pow(containers, math.Log2(twice)))
}

// MergedOff is by which part Merged may be off. It was not in eight of ten drawn services, for a bound of a hundredth
// (TestMergedIsWhatMergedContainersNeed in fleet/generate).
const MergedOff = 0.25
