// Package nodefit says whether a cluster's node holds one more pod by what its pods want together, and how well.
//
// # Rule
//
// What the pods of a node want for all but the risk ([packing.Rule], as fleet plan) may be at most its CPUs, with the new
// one. Requests may then add up to more than the node has, but never to more than [Rule.MaxRequestsRatio] times that: demand
// is measured, and tomorrow's may differ. A pod without rows wants what it requests, all the time.
//
// # Worked example
//
// A node of 4 CPUs has requests of 4, and its pods want 1.2 CPUs for all but 0.1 % of the time. A pod that requests 1 CPU
// and wants at most 0.5 makes that 1.7 or less of 4 CPUs, and the requests 1.25 times the node's: with a ratio of 1.5 it
// fits, with one of 1.2 it does not. On a node whose requests are 1 and whose pods want 3.9 CPUs it may not.
package nodefit

import (
	"math"

	"github.com/unthrottle/unthrottle/internal/demand/packing"
)

// Rule is what a node may hold.
type Rule struct {
	packing.Rule
	// MaxRequestsRatio is the most that requests may add up to, as a multiple of the node's CPUs, from 1. At 1 no node is
	// refused: whether requests fit is for others to say.
	MaxRequestsRatio float64
	// Reserve is the share of each node's CPUs that is left alone, from 0 and below 1: demand differs from what it was.
	Reserve float64
	// Most prefers nodes whose pods want most, so that few nodes are used, to those with least.
	Most bool
}

// Load is what pods request and want, both in CPUs.
type Load struct {
	RequestedCPUs float64
	Wants         packing.Pooled
}

// With is what a node is loaded with if it gets one more pod.
type With struct {
	// TailCPUs is how many CPUs its pods want for all but the risk.
	TailCPUs float64
	// RequestsRatio are the sum of requests, as a multiple of the node's CPUs; +Inf on a node without CPUs.
	RequestsRatio float64
}

// Reasons for which a node does not hold a pod. Users read them.
const (
	TooManyRequests = "requests of CPU exceed the ratio that may be requested"
	TooMuchDemand   = "the pods' measured demand needs more CPUs than the node has"
)

// With is what a node of so many CPUs has with a pod beside what runs there.
func (r Rule) With(cpus float64, node, pod *Load) With {
	w := With{TailCPUs: r.WantsWith(&node.Wants, &pod.Wants), RequestsRatio: math.Inf(1)}
	if cpus > 0 {
		w.RequestsRatio = (node.RequestedCPUs + pod.RequestedCPUs) / cpus
	}
	return w
}

// WhyNot is why a node of so many CPUs does not hold what With says; "": it does.
func (r Rule) WhyNot(cpus float64, w With) string {
	switch {
	case r.MaxRequestsRatio <= 1:
		return ""
	case !packing.Fits(w.RequestsRatio, r.MaxRequestsRatio):
		return TooManyRequests
	case !packing.Fits(w.TailCPUs, r.usable(cpus)):
		return TooMuchDemand
	}
	return ""
}

// usable are those of a node's CPUs that are not left alone.
func (r Rule) usable(cpus float64) float64 { return (1 - r.Reserve) * cpus }

// MostScore is the best score.
const MostScore = 100

// Score says how well a node of so many CPUs suits, from 0 to MostScore: by the share of its CPUs that is left for all but
// the risk, or with [Rule.Most] by the share that is wanted. A node that has too few gets 0 either way.
func (r Rule) Score(cpus float64, w With) int64 {
	usable := r.usable(cpus)
	if usable <= 0 || !packing.Fits(w.TailCPUs, usable) {
		return 0
	}
	share := min(1, w.TailCPUs/usable)
	if !r.Most {
		share = 1 - share
	}
	return int64(math.Round(MostScore * share))
}
