// Package scenario has two formats: Scenario v1, one file that describes a host, its cgroups and its
// workloads, and Outcome v1, the result.
//
// # The problem
//
// A claim that a setting helps must name the work and the host, and others must be able to repeat it. One
// description serves a real run and the simulator. The difference of the two outcomes is then the simulator's
// error.
//
// # The rule
//
// A Scenario is a plain value. Parse makes one from YAML, and refuses everything that it does not know: an
// unknown key, a time without a unit, a setting that the kernel would refuse (with the kernel's reason), a
// scenario too large to run. Every error names file, line and key. Real and simulated runs give the same kind
// of Outcome.
//
// # A worked example
//
//	version: 1
//	duration: 1s
//	host: {cpus: 1, hz: continuous, kernel: "5.15"}
//	cgroups:
//	  app: {quota: 40ms}
//	workloads:
//	  request: {kind: service, cgroup: app, threads: 1, arrivals: {at: [0s]}, work: 200ms}
//
// is the example of package bandwidth: one request of 200 ms under a limit of 40 ms in 100 ms (the default
// period). Its outcome is one response of 440 ms and 4 throttled periods. With "quota: 400us" Parse answers
//
//	conceptual.yaml:5: cgroups.app.quota: 400µs is below the least of 1ms
//
// # Limits
//
// One host; no recordings; a topology is regular, with equal cores, caches and nodes.
// docs/reference/scenarios.md defines every key with unit, default and bounds.
package scenario
