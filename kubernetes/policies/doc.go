// Package policies turns ThrottlePolicy and ClusterThrottlePolicy objects into the agent's rules file, and says of each object
// what became of it.
//
// # Rule
//
// The agent tries rules in order, and the first that matches a container counts. The file has the ThrottlePolicies' rules
// first, then the ClusterThrottlePolicies', then those of the chart's own file. Among policies of one kind the oldest comes
// first, then the name decides. A ThrottlePolicy matches its own namespace alone, and may do what the oldest
// ClusterThrottlePolicy that has `allow` and names the namespace lets it do. Where none does, it may observe, leave alone, and
// choose by forecast.
//
// # A policy with a mistake
//
// A policy is checked by the agent's own parser. If a part of it is wrong, none of it counts: the spec that was accepted last, which the
// object's status keeps, stays in force, if that is allowed still.
//
// # Worked example
//
// ClusterThrottlePolicy "shops" allows {mode: apply, remedies: [auto]} in the namespaces "shop-*". ThrottlePolicy shop-a/cart
// says {mode: apply, rules: [{remedy: secondary}]}. It is not accepted: spec.rules[0].remedy. With remedy: auto and
// verify: probe it is, and its rule matches namespace shop-a alone.
//
// # Limits
//
// No policy names a command, since that would run as root on each node. So mode: apply goes with remedy: auto and
// verify: probe, with secondary, and with none; another remedy has nothing that judges it, and may be named to observe
// only. Two patterns that overlap in part are no conflict
// here: only a rule that never counts is told.
package policies
