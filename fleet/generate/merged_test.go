package generate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
)

// together is what several containers want at the same time.
func together(all ...offered) offered {
	sum := offered{make([]int64, periods), make([]int32, periods)}
	for _, d := range all {
		for i := range d.workNS {
			sum.workNS[i] += d.workNS[i]
			sum.width[i] += d.width[i]
		}
	}
	return sum
}

// need is the least limit at which a demand is stopped for so little of its time to work, and its mean.
func need(d offered, bound float64) (least, mean float64) {
	widest, work := 0.0, int64(0)
	for i, w := range d.width {
		widest = max(widest, float64(w))
		work += d.workNS[i]
	}
	below, enough := 0.0, widest
	for enough-below > 0.001 {
		middle := (below + enough) / 2
		if r := d.under(middle, plain, nil); float64(r.stopped) <= bound*float64(r.stopped+r.busy) {
			enough = middle
		} else {
			below = middle
		}
	}
	return enough, float64(work) / float64(time.Duration(periods)*period)
}

// What two containers need as one, and one as two, by the rule and by running them, of 200 drawn services.
func TestMergedIsWhatMergedContainersNeed(t *testing.T) {
	for _, bound := range []float64{0.01, 0.001} {
		var merged, parted []float64
		for no := range uint64(200) {
			chance := rand.New(rand.NewPCG(11, no))
			limit := limits[chance.IntN(len(limits))]
			p := profileOf(chance, limit)
			a, b := p.offered(chance, levels-1), p.offered(chance, levels-1)
			oneLeast, mean := need(a, bound)
			otherLeast, _ := need(b, bound)
			least, both := need(together(a, b), bound)
			one := max(oneLeast, otherLeast) // a service has one limit
			twice := seen(a, limit, mean).TwiceNeeds(bound)
			merged = append(merged, leastlimit.Merged(one, mean, 2, twice)/least)
			parted = append(parted, leastlimit.Merged(least, both, 0.5, seen(together(a, b), 2*limit, both).TwiceNeeds(bound))/one)
		}
		for name, ratios := range map[string][]float64{"two as one": merged, "one as two": parted} {
			slices.Sort(ratios)
			within := 0
			for _, r := range ratios {
				if r >= 1-leastlimit.MergedOff && r <= 1+leastlimit.MergedOff {
					within++
				}
			}
			t.Logf("bound %v, %s: rule over run %.2f %.2f %.2f %.2f %.2f; within %.0f %%: %d of %d", bound, name,
				ratios[10], ratios[40], ratios[100], ratios[160], ratios[190],
				100*leastlimit.MergedOff, within, len(ratios))
			// For a bound of a thousandth, five minutes have one stop or none: the runs themselves differ by as much.
			if middle := ratios[len(ratios)/2]; middle < 0.9 || middle > 1.1 || bound == 0.01 && within < len(ratios)*8/10 {
				t.Errorf("bound %v, %s: the median is %.2f, and %d of %d are within", bound, name, middle, within, len(ratios))
			}
		}
	}
}

// seen is what a row has of a demand under a limit.
func seen(d offered, limit, mean float64) *leastlimit.Demand {
	r := d.under(limit, plain, nil)
	of := leastlimit.Demand{WidestMean: mean, StoppedSeconds: r.stopped.Seconds()}
	for _, l := range histogram(r.width) {
		of.Width = append(of.Width, leastlimit.Level(l))
	}
	for _, l := range histogram(r.wanted) {
		of.Wanted = append(of.Wanted, leastlimit.Level(l))
	}
	return &of
}
