package main

import "math"

// The steps of the load, as multiples of the service's usual one. Of those the first two of round 0 make the objective and the day of use.
const halfLoad = 0.5

var loads = []float64{halfLoad, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4}

// chainLoads are those of a chain, all of which are measured.
var chainLoads = []float64{0.1, 0.3, halfLoad, 0.7, 0.8, 0.9, 1}

// objectiveTimes is how many times the p99 without a limit, at half of the load, the objective is.
const objectiveTimes = 3

// stepsOver is after how many steps over the objective in a row a variant ends.
const stepsOver = 2

// over tells whether a step is over the objective: by its p99, or as it measured none.
func (p *point) over(objective float64) bool { return p.P99 == nil || *p.P99 > objective }

// ended tells whether the last steps were all over the objective.
func ended(points []point, objective float64) bool {
	n := len(points)
	if n < stepsOver {
		return false
	}
	for _, p := range points[n-stepsOver:] {
		if !p.over(objective) {
			return false
		}
	}
	return true
}

// highest is the highest load within the objective, between the last step within it and the next one, by the logarithm of p99. A single
// step over it with the next one within it again counts as within. open is true where no step is over it: the load is at least that. 0 is
// a variant that is over it from the first step on.
func highest(points []point, objective float64) (load float64, open bool) {
	last := -1
	for i := range points {
		if !points[i].over(objective) {
			last = i
		}
	}
	switch {
	case last < 0:
		return 0, false
	case last == len(points)-1:
		return points[last].Load, true
	}
	from, to := points[last], points[last+1]
	if to.P99 == nil {
		return from.Load, false
	}
	part := math.Log(objective / *from.P99) / math.Log(*to.P99 / *from.P99)
	return from.Load + part*(to.Load-from.Load), false
}

// between is a figure at a load, between the steps beside it; below the first step that of the first. false: it is not known there.
func between(points []point, load float64, of func(*point) *float64) (float64, bool) {
	for i := range points {
		p := &points[i]
		if p.Load < load {
			continue
		}
		above := of(p)
		if above == nil {
			return 0, false
		}
		if i == 0 || p.Load == load {
			return *above, true
		}
		below := of(&points[i-1])
		if below == nil {
			return 0, false
		}
		part := (load - points[i-1].Load) / (p.Load - points[i-1].Load)
		if *below <= 0 || *above <= 0 {
			return *below + part*(*above-*below), true
		}
		return *below * math.Pow(*above / *below, part), true
	}
	return 0, false
}
