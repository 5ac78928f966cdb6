package canary

import (
	"fmt"
	"math"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// Difference is how many times as long the quantile of treated pods is, against that of the others, each against its own before:
// the geometric mean, with an interval of 95 %.
type Difference struct {
	Times, Low, High float64
	// Treated and Control are how many pods were measured before and after.
	Treated, Control int
}

// String is for people: "0.81 times as long (0.74 to 0.89), in 20 treated and 20 other pods".
func (d Difference) String() string {
	return fmt.Sprintf("%.2f times as long (%.2f to %.2f), in %d treated and %d other pods", d.Times, d.Low, d.High, d.Treated, d.Control)
}

// Compare is the difference of the differences of pods. Pods that were not measured before and after are left out; false: too few
// are left, one treated and two others. Both sides are taken to vary alike, which lets a single treated pod be compared.
func Compare(pods []Pod, treated func(Pod) bool) (Difference, bool) {
	var sides [2][]float64
	for _, p := range pods {
		if !positive(p.Before) || !positive(p.After) {
			continue
		}
		side := 0
		if treated(p) {
			side = 1
		}
		sides[side] = append(sides[side], math.Log(*p.After / *p.Before))
	}
	d := Difference{Control: len(sides[0]), Treated: len(sides[1])}
	if !enough(d.Treated, d.Control) {
		return d, false
	}
	mean, deviation := stats.MeanDeviation(sides[0])
	squares, apart := deviation*deviation*float64(d.Control-1), sides[1][0]-mean
	if d.Treated > 1 {
		with, of := stats.MeanDeviation(sides[1])
		squares, apart = squares+of*of*float64(d.Treated-1), with-mean
	}
	freedom := d.Treated + d.Control - 2
	half := stats.StudentT(0.975, freedom) * math.Sqrt(squares/float64(freedom)*(1/float64(d.Treated)+1/float64(d.Control)))
	d.Times, d.Low, d.High = math.Exp(apart), math.Exp(apart-half), math.Exp(apart+half)
	return d, true
}

// enough tells whether so many pods can be compared.
func enough(treated, control int) bool { return treated >= 1 && control >= 2 }

// positive tells whether a figure was measured and has a logarithm.
func positive(v *float64) bool { return v != nil && *v > 0 && !math.IsInf(*v, 0) }

// worse: longer by a tenth, and longer at all beyond chance.
func (d Difference) worse() bool { return d.Low > 1 && d.Times >= 1+stats.LeastGain }

// better: shorter beyond chance.
func (d Difference) better() bool { return d.High < 1 }
