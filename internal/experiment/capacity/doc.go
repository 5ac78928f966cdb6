// Package capacity finds the highest load at which a service keeps its objective,
// under each remedy in turn.
//
// # Problem
//
// "With the remedy the stalls are gone" does not give the remedy a value. The owner
// of a service pays for CPUs. The owner asks how much load they carry before users
// notice, and which remedy raises that load at the same CPUs.
//
// # Rule
//
// A service of real threads ([service]) runs in a cgroup of the sandbox. A generator
// outside that cgroup ([loadgen]) sends requests at times that do not depend on the
// answers. One step is one load for some seconds, on a fresh process. The service
// meets the objective in a step if it keeps the quantile and the share of errors.
//
// A search raises the load until the service misses the objective, and then halves the
// interval. Every repeat searches each remedy once, in an order that rotates. Other
// load on the host then meets all remedies alike. Figures are ratios to the plain
// quota of the same repeat.
//
// Ratios have an interval of 95 %: Student's t over the logarithms of the repeats'
// ratios, widened by the resolution of the searches. This assumes that the ratios
// scatter about alike. It assumes nothing about the latencies.
//
// A row is noisy if the generator used more than 5 % of a CPU, other processes more
// than 10 %, or the repeats lie far apart. The row says which.
//
// # Worked example
//
// Five repeats find 410, 400, 420, 390, 405 requests per second under the quota
// and 610, 615, 600, 620, 590 with pin. The ratios are 1.49, 1.54, 1.43, 1.59,
// 1.46: 1.50 with the interval 1.42 to 1.58.
//
// # Equal conditions
//
// On 2 CPUs the limit is 1 CPU, and raise is x1.5, since x2 would be no limit.
// Every row shows the CPUs granted: a row with more CPUs is not better for it. The
// sandbox has the highest weight, so that other load does not decide the figures.
//
// # Limits
//
// A service that burns CPU, touches shared data and takes locks is a model of
// one. It has no disk and no network. On a host with few CPUs the quota does little
// harm: the more CPUs a container uses at once, the sooner it spends its quota.
//
// Sources: seed 000 (load tests of services until they miss their objective),
// seed 003 (the same work under quota and cpuset).
package capacity
