// Package generate makes the rows of a fleet that never was, with the truth about it.
//
// # Problem
//
// A report about a real fleet cannot be checked: what each service needs at least is not known there. And a fleet of
// 65,000 hosts is not at hand.
//
// # Rule
//
// A service draws its replicas and its limit from a seed. What it wants in each period of 100 ms, work and width, is of
// a recording of a real service (recorded.json, by make truth-demand): of one that is drawn, from a moment that is
// drawn, over and over, at a size that is drawn. Its demand at each of [levels] levels of load is stepped period by
// period through internal/sim/simulate/coarse under its limit, and makes the row of five minutes of a container at that
// level. What its periods tell of other limits is internal/demand/periodmodel's, as on a host. The truth is from the
// same demands: the least limit at which the model stops a container for at most the bound.
//
// A service that uses more than the recorded one is wider, by a factor, or is the sum of several from moments of their
// own, or both. One that uses less has a part of the requests. Less load takes from each period up to the median, and
// leaves out whole stretches above it. Drawn demands, without a recording, are there for comparison ([Options.Drawn]).
//
// With churn ([Options.Churn]) a service is of a kind by its number: a Deployment with rolling deploys, one that is
// scaled with its load, a StatefulSet, a DaemonSet, a CronJob. A node ends by a drain or without a notice, and what ran
// there runs elsewhere, under another name. The truth is of one replica that is always there, and of those that run at
// the end.
//
// Of some services ([Options.Priced]) recordings tell what remedies need at the same p99. The truth of a lower limit and of a
// burst is the period model's, and that of the others is drawn. Each container has a recording whenever its load changes,
// which tells the need at that load, off by at most 4 %.
//
// Some of these get a remedy half-way ([Options.Treated]), their containers one after another within an hour: the one that
// needs fewest cores, with what surely is enough. In a tenth of them requests then take longer than was promised. A burst is
// stepped through the period model; no quota stops a narrow or a pin.
//
// # Worked example
//
// A recorded server uses 0.3 CPUs, at most 8 at once. A service with a limit of 4 is to use 1.2 at its peak: four times
// that. A size of 2 makes it 16 wide, and two parts of that size begin at moments of their own.
//
// # Limits
//
// A recording is of 20 s, so that what comes less often is not in it, and five minutes have it fifteen times. Its
// client and its size are those of bench/truth. Containers of a service at one level of load have equal rows. The truth
// is the period model's, whose own error docs/results/coarse.md has.
package generate
