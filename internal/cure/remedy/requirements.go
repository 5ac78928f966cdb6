package remedy

import (
	"fmt"
	"math"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// requirements is how many CPUs containers need.
type requirements struct {
	Requested float64 // by their weights
	Used      float64 // as measured
	Measured  bool
}

// CPUs is the larger of the two.
func (n requirements) CPUs() float64 { return max(n.Requested, n.Used) }

func (n requirements) plus(m requirements) requirements {
	return requirements{n.Requested + m.Requested, n.Used + m.Used, n.Measured || m.Measured}
}

func (n requirements) used() string {
	if !n.Measured {
		return "not measured"
	}
	return fmt.Sprintf("%.4g", n.Used)
}

// need of one container: no more than its limit lets it use.
func (f facts) need(c hoststate.Container) requirements {
	g := f.Groups[c.Group.Path]
	if g.Idle {
		return requirements{Measured: true} // it takes what is left, and needs nothing
	}
	n := requirements{Requested: f.request(c, g.Shares)}
	if g.UsedCPUs != nil {
		n.Used, n.Measured = *g.UsedCPUs, true
	}
	if limit, limited, _ := cgroup.Effective(f.levels(c.Group.Path)); limited {
		// Over a short window the use measured may be above it: a burst, or a
		// period that began with a full quota and ended with another.
		n.Requested, n.Used = min(n.Requested, limit), min(n.Used, limit)
	}
	return n
}

// request reads a weight as CPUs asked for: cpu.shares / 1024, as the kubelet
// writes it. The weight that every cgroup begins with was not chosen and
// says nothing, except in a pod, where 1 CPU and the default are the same.
func (f facts) request(c hoststate.Container, shares uint64) float64 {
	inPod := c.PodUID != ""
	switch {
	case shares == 0 || shares == cgroup.DefaultShares && !inPod:
		return 0
	case f.CPUVersion == cgroup.V2 && inPod:
		return f.podShares(cgroup.WeightOfShares(shares)) / cgroup.DefaultShares
	}
	return float64(shares) / cgroup.DefaultShares
}

// podShares is the cpu.shares behind a pod's cpu.weight. Runtimes map the one
// to the other by their own formulas, which do not keep ratios: until 2025 by
// 1 + (shares-2)*9999/262142 (KEP-2254), since by a curve through 2, 1024 and
// 262144 (opencontainers/cgroups, ConvertCPUSharesToCgroupV2Value). Which one a
// node has shows in the weight of its kubepods cgroup, which stands for no more
// CPUs than the machine has; where that cannot be seen, the older formula
// holds, which gives more.
func (f facts) podShares(weight uint64) float64 {
	top := max(f.Groups["/kubepods"].Shares, f.Groups["/kubepods.slice"].Shares)
	online := float64(f.Machine.Online().Size())
	if top != 0 && linearShares(cgroup.WeightOfShares(top)) > online*cgroup.DefaultShares*1.05 {
		return curvedShares(weight)
	}
	return linearShares(weight)
}

// linearShares undoes the older formula; weights are cut to whole numbers, so
// that this is the least of the shares that give the weight.
func linearShares(weight uint64) float64 {
	return cgroup.MinShares + float64(weight-cgroup.MinWeight)*(cgroup.MaxShares-cgroup.MinShares)/(cgroup.MaxWeight-cgroup.MinWeight)
}

// curvedShares undoes weight = 10^((l^2+125*l)/612 - 7/34), l = log2(shares).
func curvedShares(weight uint64) float64 {
	e := math.Log10(float64(weight)) + 7.0/34
	return math.Exp2((math.Sqrt(125*125+4*612*e) - 125) / 2)
}
