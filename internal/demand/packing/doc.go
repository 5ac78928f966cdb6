// Package packing says which container goes on which host, so that few hosts are used and none is short of CPUs or
// memory.
//
// # Problem
//
// Schedulers sum requests or limits. Containers seldom want them at once, so that hosts stay idle. A sum of means is
// too little: then every host is short half of the time.
//
// # Rule
//
// A host holds containers if the quantile of their pooled demand, that it exceeds for [Options.Risk] of the time, is at
// most its CPUs. Demands of containers are taken as independent within a phase of the day, so that their [Moments] add
// up. The quantile is the normal one with the first correction for skewness (Cornish and Fisher), and never more than
// the sum of the containers' widest moments:
//
//	min(sum of most, mean + z*sqrt(variance) + (z*z-1)/6 * third/variance)
//
// Where one container has most of the spread, that is too little. Its moments tell how wide it bursts and for what
// share of the time, as if it had two levels. The host must also hold the widest such burst, with what the others want
// beside it for all but risk/share of that time.
//
// It holds in each phase: what all services do at noon is not pooled away. Memory is a sum. Exclusive CPUs are whole,
// and demand of their own.
//
// Secondaries yield to all others: what these want does not change by them. They run on what is left, exclusive CPUs
// that are idle included, and need it on average: the means of all containers of a host are at most its CPUs.
//
// [Make] makes two plans and keeps the one with fewer hosts, and of two equal ones that with fewer moves. One drains
// hosts into others, those with fewest containers first. The other packs all anew: host by host, always the container
// whose shape suits best what is left of it. A budget of moves leaves only the first.
//
// # Worked example
//
// Two containers use 1 CPU for 99 % of the time and 5 for the rest. Mean 1.04, variance 0.158, third moment 0.62 each.
// At a risk of 0.001 (z = 3.09) two of them want 2.08 + 1.74 + 5.59 = 9.4 CPUs, and ten of them 10.4 + 3.89 + 5.59 =
// 19.9 of the 50 that they may want.
//
// # Limits
//
// Two or three moments are not a distribution. Where containers burst rarely and wide, most hosts are short for less
// than the risk, and some for up to twice of it: a test holds that. Of few containers the correction errs above: the
// two of the example want more than 6 for 0.0001 of the time. Placement has no rules of affinity, and does not know
// which containers a failing host would take along. The lower bound is of containers that can be cut in
// pieces and are each beside their like, which pools no worse than any mix: no plan by this rule can use fewer hosts, and
// the best one may use more.
//
// Sources: E. A. Cornish and R. A. Fisher, Moments and Cumulants in the Specification of Distributions (1938); R.
// Panigrahy et al., Heuristics for Vector Bin Packing (2011), for the choice by the dot product.
package packing
