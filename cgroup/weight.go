package cgroup

import "strconv"

// Bounds and defaults of the two weights (kernel/sched/sched.h MIN_SHARES, MAX_SHARES; include/linux/cgroup.h
// CGROUP_WEIGHT_MIN, _DFL, _MAX).
const (
	MinShares, DefaultShares, MaxShares = 2, 1024, 262144
	MinWeight, DefaultWeight, MaxWeight = 1, 100, 10000
)

// SharesOfWeight is the v1 cpu.shares that weighs as much as a v2 cpu.weight: the kernel's own rule,
// weight * 1024 / 100 rounded (sched_weight_from_cgroup).
func SharesOfWeight(weight uint64) uint64 {
	weight = min(max(weight, MinWeight), MaxWeight)
	return (weight*DefaultShares + DefaultWeight/2) / DefaultWeight
}

// WeightOfShares is the v2 cpu.weight that weighs as much as cpu.shares (sched_weight_to_cgroup). Above 102,400
// shares it stays at the highest weight. Container runtimes use other formulas, which do not keep ratios.
func WeightOfShares(shares uint64) uint64 {
	shares = min(max(shares, MinShares), MaxShares)
	return min(max((shares*DefaultWeight+DefaultShares/2)/DefaultShares, MinWeight), MaxWeight)
}

// ReadShares reads the weight in the unit of cpu.shares (1024 is the default), on v2 converted.
func ReadShares(fsys FS, path string) (uint64, error) {
	v, ok := fsys.Version(CPU)
	if !ok {
		return 0, NewError(fsys, CPU, Error{Op: OpRead, Path: path, Kind: ErrNoController})
	}
	text, err := fsys.Read(CPU, path, WeightFile(v))
	if err != nil {
		return 0, err
	}
	n, err := parseCount(text)
	if err != nil {
		return 0, badFile(fsys, CPU, path, WeightFile(v), err)
	}
	if v == V2 {
		n = SharesOfWeight(n)
	}
	return n, nil
}

// SharesWrite is the write that sets the weight, given in the unit of cpu.shares.
func SharesWrite(v Version, shares uint64) FileValue {
	shares = min(max(shares, MinShares), MaxShares)
	if v == V2 {
		shares = WeightOfShares(shares)
	}
	return FileValue{WeightFile(v), strconv.FormatUint(shares, 10)}
}
