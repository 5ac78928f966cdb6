// Package capacity finds the highest load at which a service keeps its objective,
// under each remedy in turn.
//
// # Problem
//
// "With the remedy the stalls are gone" does not say what it is worth. The owner
// of a service pays for CPUs, and asks how much load they carry before users
// notice: and which remedy raises that, at the same CPUs.
//
// # Rule
//
// A service of real threads ([service]) runs in a cgroup of the bench's own; a
// generator outside it ([loadgen]) sends requests at times that do not depend on
// the answers. One step is one load for some seconds, on a fresh process; it is
// met if the objective's quantile and share of errors are. A search raises the
// load until it is missed, and then halves the interval. Remedies are
// interleaved: every repeat searches each of them, in an order that turns, so
// that what the host does meanwhile meets all alike. Figures are ratios to the
// plain quota of the same repeat.
//
// Ratios have an interval of 95 %: Student's t over the logarithms of the
// repeats' ratios, which assumes that they scatter about alike, and nothing of
// the latencies; it is widened by the resolution of the searches. A row is noisy, and says why, where the generator used more
// than 5 % of a CPU, others on the host more than 10 %, or the repeats lie far
// apart.
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
// Every row shows the CPUs granted; what has more is not better for it. The
// bench's own cgroup has the highest weight: other load does not decide.
//
// # Limits
//
// A service that burns CPU, touches shared data and takes locks is a model of
// one. It has no disk and no network. On a host with few CPUs the quota's harm is
// small: the more CPUs a container can use at once, the sooner its quota is gone.
//
// Sources: seed 000 (load tests of services until they miss their objective),
// seed 003 (the same work under quota and cpuset).
package capacity
