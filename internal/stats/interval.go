package stats

import "math"

// t95 is Student's t for an interval of 95 %, by degrees of freedom from 1 on (any
// table of the distribution). For more degrees the normal distribution is near.
var t95 = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145}

func studentT(freedom int) float64 {
	if freedom <= len(t95) {
		return t95[freedom-1]
	}
	return 1.96 + 2.5/float64(freedom)
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
	half := math.Hypot(studentT(len(logs)-1)*deviation/math.Sqrt(float64(len(logs))), 1.96*grid)
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
