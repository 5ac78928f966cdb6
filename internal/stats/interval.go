package stats

import "math"

// StudentT is Student's t of a probability between 0.5 and 1, exclusive, by degrees of freedom from 1 on: so many deviations lies a
// mean above the true one with that probability at most. For whole degrees the distribution is a finite sum (Abramowitz and Stegun,
// 26.7.3 and 26.7.4), which is inverted by halving.
//
// Worked example: 0.975 and 3 degrees are 3.182.
func StudentT(probability float64, freedom int) float64 {
	low, high := 0.0, math.Pi/2 // of the angle whose tangent is t over the root of freedom
	for range 60 {
		if angle := (low + high) / 2; within(angle, freedom) < 2*probability-1 {
			low = angle
		} else {
			high = angle
		}
	}
	return math.Tan((low+high)/2) * math.Sqrt(float64(freedom))
}

// within is the probability that t lies between those of two angles, a positive one and its negative.
func within(angle float64, freedom int) float64 {
	sin, cos := math.Sincos(angle)
	sum, term, first := 0.0, 1.0, 2
	if freedom%2 == 1 {
		term, first = cos, 3
	}
	for n := first; n <= freedom; n += 2 {
		sum += term
		term *= cos * cos * float64(n-1) / float64(n)
	}
	if freedom%2 == 1 {
		return 2 / math.Pi * (angle + sin*sum)
	}
	return sin * sum
}

// Ratio is a mean ratio with its interval of 95 %.
type Ratio struct{ Mean, Low, High float64 }

// Ratios compares pairs, a[i] with b[i]. It returns the geometric mean of a/b, and
// Student's t over the logarithms. grid is the standard deviation, as a logarithm, of
// the figures' resolution, 0 without one: all pairs have it in common, so that their
// scatter cannot show it. It is added in quadrature. false: fewer than two pairs of
// positive numbers.
func Ratios(a, b []float64, grid float64) (Ratio, bool) {
	var logs []float64
	for i := range min(len(a), len(b)) {
		if a[i] > 0 && b[i] > 0 {
			logs = append(logs, math.Log(a[i]/b[i]))
		}
	}
	if len(logs) < 2 {
		return Ratio{}, false
	}
	mean, deviation := MeanDeviation(logs)
	half := math.Hypot(StudentT(0.975, len(logs)-1)*deviation/math.Sqrt(float64(len(logs))), 1.96*grid)
	return Ratio{math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)}, true
}

// Grid is the standard deviation of the difference of two numbers that are each
// known within an interval of that length, uniformly.
func Grid(a, b float64) float64 { return math.Hypot(a, b) / math.Sqrt(12) }

// MeanDeviation is the mean and the standard deviation of a sample of two or more.
func MeanDeviation(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(values)-1))
}
