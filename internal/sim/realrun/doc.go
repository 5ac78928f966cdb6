// Package realrun runs a scenario for real, on this host, and gives the same Outcome
// as the simulator.
//
// # Problem
//
// A forecast is worth as much as its comparison with reality. One file must therefore
// give two outcomes, one of a real kernel and one of the simulator. Neither side may
// leave out a part of the file without saying so.
//
// # Rule
//
// The run makes each cgroup of the scenario in its sandbox ([sandbox]), nested as in the
// file, with its limit, weight and CPUs after its remedy. The scenario's CPU n is the
// n-th CPU that the sandbox may use. Each workload is a process of its own in its
// cgroup. A service and its collector are one process. All begin together. The run
// reads the counters at the beginning and at the end. It always ends all processes and
// removes all cgroups.
//
// The file's kernel (version, ticks, constants) is for the simulator: here the kernel
// is this host's, and the outcome's notes say so.
//
// # Worked example
//
// lat-small.yaml on 2 CPUs has a cgroup with 100 ms per 100 ms. In it are a process of 8
// threads that burn and a process of one thread that sleeps. After 10 s: 100 periods,
// all throttled, 10 s used, and the median sleep of 10 ms took 60 ms.
//
// # Limits
//
//   - It refuses a scenario that needs more CPUs or memory than there are. It refuses
//     hosts whose own limit would decide.
//   - Workloads in the root cgroup are in one cgroup beside the others here: they
//     share CPUs as a group. So are those of a cgroup that has a pinned one below it.
//   - cgroup v2: a cgroup has processes or cgroups, not both (no internal processes).
//     The run refuses such a scenario before it starts.
//   - Width, active periods and stopped time are not measured without a [Probe].
//   - The quantiles include requests that failed or were on their way at the end, with
//     the time that they had had.
package realrun
