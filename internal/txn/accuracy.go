package txn

import (
	"cmp"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// Accuracy says how near the forecasts of one figure came, over all changes by one remedy.
type Accuracy struct {
	Remedy string `json:"remedy"`
	// Figure is as in Deviation.
	Figure string `json:"figure"`
	// Measured is how often the figure was forecast and measured, Within how often it came within the forecast's interval.
	Measured int `json:"measured"`
	Within   int `json:"within"`
	// Ratio is the median of what came divided by the geometric middle of the interval; 1: as forecast. Null: no
	// change has both above 0.
	Ratio *float64 `json:"came_by_forecast"`
}

// Accuracies compares the forecasts of changes with what came, sorted by remedy and figure.
func Accuracies(inForce []InForce) []Accuracy {
	type key struct{ remedy, figure string }
	found, ratios := map[key]*Accuracy{}, map[key][]float64{}
	for _, f := range inForce {
		for _, d := range Deviations(f.Expected, f.Outcome) {
			k := key{f.Remedy, d.Figure}
			if found[k] == nil {
				found[k] = &Accuracy{Remedy: f.Remedy, Figure: d.Figure}
			}
			found[k].Measured++
			if d.Miss == 0 {
				found[k].Within++
			}
			if middle := math.Sqrt(d.Low * d.High); middle > 0 && d.Got > 0 {
				ratios[k] = append(ratios[k], d.Got/middle)
			}
		}
	}
	sorted := []Accuracy{}
	for k, a := range found {
		if len(ratios[k]) > 0 {
			a.Ratio = new(stats.Median(ratios[k]))
		}
		sorted = append(sorted, *a)
	}
	slices.SortFunc(sorted, func(a, b Accuracy) int {
		return cmp.Or(cmp.Compare(a.Remedy, b.Remedy), cmp.Compare(a.Figure, b.Figure))
	})
	return sorted
}
