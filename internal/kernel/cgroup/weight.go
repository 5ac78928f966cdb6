package cgroup

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds and defaults of the two weights (kernel/sched/sched.h MIN_SHARES, MAX_SHARES; include/linux/cgroup.h
// CGROUP_WEIGHT_MIN, _DFL, _MAX).
const (
	MinShares, DefaultShares, MaxShares = 2, 1024, 262144
	MinWeight, DefaultWeight, MaxWeight = 1, 100, 10000
)

// SharesOfWeight returns the v1 cpu.shares equal to a v2 cpu.weight by the kernel's own rule, weight * 1024 / 100
// rounded (sched_weight_from_cgroup).
func SharesOfWeight(weight uint64) uint64 {
	weight = min(max(weight, MinWeight), MaxWeight)
	return (weight*DefaultShares + DefaultWeight/2) / DefaultWeight
}

// WeightOfShares returns the v2 cpu.weight equal to cpu.shares (sched_weight_to_cgroup). Above 102,400 shares it stays
// at the highest weight. Container runtimes use other formulas, which do not keep ratios.
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

// SharesWrite returns the write that sets the weight, given in the unit of cpu.shares.
func SharesWrite(v Version, shares uint64) FileValue {
	shares = min(max(shares, MinShares), MaxShares)
	if v == V2 {
		shares = WeightOfShares(shares)
	}
	return FileValue{WeightFile(v), strconv.FormatUint(shares, 10)}
}

// WeightIdle is the weight of a cgroup with cpu.idle 1. Its tasks run only where none of its siblings' are runnable,
// and yield immediately. It is SCHED_IDLE for a whole cgroup (since 5.15, sched_group_set_idle).
const WeightIdle = "idle"

// ReadWeight reads the weight as its file has it, or WeightIdle where cpu.idle is set.
func ReadWeight(fsys FS, path string) (string, error) {
	idle, err := ReadIdle(fsys, path)
	switch {
	case err != nil && !errors.Is(err, ErrNoFile):
		return "", err
	case idle:
		return WeightIdle, nil
	}
	v, _ := fsys.Version(CPU)
	return fsys.Read(CPU, path, WeightFile(v))
}

// ReadIdle reads cpu.idle; the error is ErrNoFile before 5.15 and in the root.
func ReadIdle(fsys FS, path string) (bool, error) {
	text, err := fsys.Read(CPU, path, FileIdle)
	if err != nil {
		return false, err
	}
	n, err := parseCount(strings.TrimSpace(text))
	if err != nil || n > 1 {
		return false, badFile(fsys, CPU, path, FileIdle, errors.Join(err, fmt.Errorf("%.20q is neither 0 nor 1", text)))
	}
	return n == 1, nil
}

// WriteWeight sets the weight, or WeightIdle. While cpu.idle is set the kernel keeps no other weight, and clearing it
// sets the default. So a cgroup that was idle has the default for a moment.
func WriteWeight(fsys FS, path, value string) error {
	if value == WeightIdle {
		return fsys.Write(CPU, path, FileIdle, "1")
	}
	idle, err := ReadIdle(fsys, path)
	if err != nil && !errors.Is(err, ErrNoFile) {
		return err
	}
	if idle {
		if err := fsys.Write(CPU, path, FileIdle, "0"); err != nil {
			return err
		}
	}
	v, _ := fsys.Version(CPU)
	return fsys.Write(CPU, path, WeightFile(v), value)
}

// DefaultWeightText returns the weight of a new cgroup, as the file has it; "" for a file that holds no weight.
func DefaultWeightText(file string) string {
	switch file {
	case fileShares:
		return strconv.Itoa(DefaultShares)
	case fileWeight:
		return strconv.Itoa(DefaultWeight)
	}
	return ""
}
