package remedy

import (
	"fmt"

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
		return f.podRequest(cgroup.WeightOfShares(shares))
	}
	return cgroup.RequestOfShares(shares)
}

// podRequest is the request behind a pod's cpu.weight. Which formula a node has shows in the weight of its kubepods cgroup, which
// stands for no more CPUs than the machine has; where that cannot be seen, the older one holds, which gives more.
func (f facts) podRequest(weight uint64) float64 {
	linear, curved := cgroup.RequestsOfWeight(weight)
	top := max(f.Groups["/kubepods"].Shares, f.Groups["/kubepods.slice"].Shares)
	if all, _ := cgroup.RequestsOfWeight(cgroup.WeightOfShares(top)); top != 0 && all > float64(f.Machine.Online().Size())*1.05 {
		return curved
	}
	return linear
}
