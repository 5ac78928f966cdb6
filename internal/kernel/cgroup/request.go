package cgroup

import "math"

// RequestOfShares is the CPU request that cpu.shares stand for: 1024 a CPU, as the kubelet and Docker write it. 0: none, since the least
// shares are those of a container that requests nothing.
func RequestOfShares(shares uint64) float64 {
	if shares <= MinShares {
		return 0
	}
	return float64(shares) / DefaultShares
}

// RequestsOfWeight are the CPU requests that a cpu.weight of v2 may stand for. Runtimes turn shares into weights by formulas of their own,
// which do not keep ratios: until 2025 by 1 + (shares-2)*9999/262142 (KEP-2254), since then (runc 1.3.2, crun 1.23) by a curve through
// the least, the usual and the most of both, 10^((l^2+125*l)/612 - 7/34) with l = log2(shares) (opencontainers/cgroups,
// ConvertCPUSharesToCgroupV2Value). A weight does not say which one made it: 59 is 1.5 CPUs by the first and 0.5 by the second. The least
// weight is no request by either.
func RequestsOfWeight(weight uint64) (linear, curved float64) {
	weight = min(weight, MaxWeight)
	if weight <= MinWeight {
		return 0, 0
	}
	// Weights are cut to whole numbers, so that this is the least of the shares that give the weight.
	shares := MinShares + float64(weight-MinWeight)*(MaxShares-MinShares)/(MaxWeight-MinWeight)
	e := math.Log10(float64(weight)) + 7.0/34
	return shares / DefaultShares, math.Exp2((math.Sqrt(125*125+4*612*e)-125)/2) / DefaultShares
}

// WeightsShares are the cpu.shares that cAdvisor shows for a weight of v2, by the first formula, and on v1 for none: of shares that are
// among them it is not known which of the two they are.
func WeightsShares(shares uint64) bool {
	if shares < MinShares || shares > MaxShares {
		return false
	}
	const span, weights = MaxShares - MinShares, MaxWeight - MinWeight
	n := ((shares-MinShares)*weights + span - 1) / span
	return MinShares+n*span/weights == shares
}
