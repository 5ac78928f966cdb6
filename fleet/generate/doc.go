// Package generate makes the rows of a fleet that never was, with the truth about it.
//
// # Problem
//
// A report about a real fleet cannot be checked: what each service needs at least is not known there. And a fleet of 65,000 hosts is
// not at hand.
//
// # Rule
//
// A service draws its replicas, its limit and its demand from a seed: work that comes in each period of 100 ms, how wide it runs, and
// how both change over the day. Its demand at each of [levels] levels of load is stepped period by period through
// internal/sim/simulate/coarse under its limit, and makes the row of five minutes of a container at that level. What its periods tell of other limits is
// internal/fleet/periodmodel's, as on a host. The truth is from the same demands: the least limit at which the model stops a container for at
// most the bound.
//
// # Limits
//
// The demands are drawn, not recorded: the tree has no recordings of real services. Containers of a service at one level of load
// have equal rows. The truth is the period model's, whose own error docs/results/coarse.md has.
package generate
