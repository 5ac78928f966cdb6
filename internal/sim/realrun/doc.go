// Package realrun runs a scenario for real, on this host, and gives the same Outcome
// as the simulator.
//
// # Problem
//
// A forecast is worth what it is compared with. So one file must give two
// outcomes, one of a real kernel and one of the simulator, and nothing of it may
// be left out on either side without a word.
//
// # Rule
//
// Each cgroup of the scenario is made in a home of the run's own ([home]), nested
// as in the file, with its limit, weight and CPUs after its remedy. The
// scenario's CPU n is the n-th that the home may use. Each workload is a process
// of its own in its cgroup; a service and its collector are one. All begin
// together; counters are read at the beginning and at the end. Whatever happens,
// all processes end and all cgroups go.
//
// What the file says of the kernel (version, ticks, constants) is the simulator's
// business: here the kernel is this host's, and the outcome's notes say so.
//
// # Worked example
//
// lat-small.yaml on 2 CPUs: a cgroup with 100 ms per 100 ms, in it a process of 8
// threads that burn and one of a thread that sleeps. After 10 s: 100 periods, all
// throttled, 10 s used, and a sleep of 10 ms took 60 ms in the middle of the
// sorted ones.
//
// # Limits
//
//   - It refuses what asks for more CPUs or memory than there are, and hosts
//     whose own limit would decide.
//   - Workloads in the root cgroup are in one cgroup beside the others here: they
//     share CPUs as a group. So are those of a cgroup that has a pinned one below it.
//   - cgroup v2: a cgroup has processes or cgroups, not both (no internal
//     processes); it says so beforehand.
//   - Width, active periods and stopped time are not measured without a [Probe].
//   - Requests that failed or were on their way at the end are in the quantiles
//     with the time that they had had.
package realrun
