// Package remedy plans what ends throttling: which settings to write, what that
// is expected to bring, and why not where it must not be done. It writes
// nothing; package apply does, with a journal, and takes it back.
//
// # The problem
//
// A quota stops a whole container because some of its threads spent it. To take
// the quota away and keep what it was for, a bound on the container and no harm
// to its neighbours, settings of several cgroups have to change together: the
// container's and its ancestors' quotas, its cpuset, and everybody else's. Each
// may belong to somebody else, and some must be left alone.
//
// # The rule
//
// A plan ([Make]) is a function of [Facts] (one look at the host, [Gather]), a
// container and a [Request]. Where it must not be done the answer is a
// [*Refused] that names the reason, the cgroups and the way out.
//
//   - pin: ceil(limit) CPUs chosen by package placement among those that the
//     container may use and nobody claims: not the reserve, isolated CPUs, other
//     pins, v2 partitions and cpuset.cpus.exclusive, v1 exclusive cpusets,
//     cpusets that somebody made narrower than their parent's, nor what the
//     kubelet's static policy gave out. They are taken out of every other
//     cpuset that has them. Refused where the CPUs left are fewer than what the
//     containers that move need: the larger of their summed requests and their
//     measured use, for every group of containers that share what is left.
//   - narrow: ceil(limit) CPUs that others may use too, close together and the
//     least loaded. A quota of whole CPUs goes, another one stays in short
//     periods.
//   - burst keeps the quota. Refused at 95 % mean use and above: nothing is
//     ever left over to be borrowed.
//   - weight takes the quota away and leaves the weight.
//   - secondary gives idle weight and takes the quota away; the CPUs of pins that
//     lend go into its cpuset, and into those above it.
//   - system ([ConfineSystem], for no container) keeps the host's own slices on the
//     reserve, as far as they hold no containers, limited units or such with CPUs
//     of their own; the reserve follows their measured use.
//   - raise multiplies the limit (by 2) or sets it; up to the host's CPUs.
//
// Ancestors. An ancestor's quota still binds if what can be used below it
// reaches it: the CPUs of the target and the quotas or exclusive CPUs of the
// other children on each level. It is lifted only if every other child on that
// level has a quota or exclusive CPUs of its own, and only on pod level or below
// a cgroup that the user named; otherwise refused, naming the children that
// would become unlimited. raise gives an ancestor the difference instead.
//
// Sharing. Several transactions may rest on one setting. CPUs are taken out of
// sets by an operation that several can hold (package change), also out of the
// set of another pinned container: when that pin is taken back first, it must
// not spread over the CPUs of this one. A transaction that rests on an
// ancestor's limit, a created cgroup or an enabled controller of another one
// holds it too.
//
// # Worked example
//
// Four CPUs, two threads a core; web (limit 1) and db in /a, a slice beside.
// Reserve: CPUs 0-1. web gets CPU 2 (pin 1 CPU; it shares a core, and the plan
// says so): /a/web 0-3 to 2, /a/db and /slice lose 2, web's quota goes. db with
// a request of 2 and the slice with one of 1.5 would have 3 CPUs for 3.5:
// refused. On two CPUs the reserve is CPU 0 and web gets CPU 1.
//
// # Verdicts
//
// [Judge] compares the user's own latencies before and after, by a quantile
// with its spread and by the longest. Without them it is always "unverified".
//
// # Limits
//
//   - Processes in the root cpuset stay and are counted: on v1 hosts with
//     systemd that is every service. Processes in another ancestor (v1) make
//     pin refuse. In another PID namespace than the host's v1 hides processes:
//     pins that would have to move some are refused, the others say that they
//     cannot count ([Facts].HiddenProcesses).
//   - On v1 the two hierarchies are listed at different moments; what does not
//     agree is listed up to three more times.
//   - A plan protects against containers that exist; [Reconcile] moves newcomers.
//     On v1, runtimes copy a shrunken parent's CPUs into new containers, which
//     keep them when the pin is taken back.
//   - Weights are read as requests where they are not the default (in pods: all).
//     v2 weights do not tell which formula made them; see podShares.
//   - Threads that chose their own CPUs are not looked at here; package apply
//     reads back where each may run.
//   - What is expected is arithmetic on what was observed, no simulation.
//
// Sources: kernel/sched/core.c (tg_cfs_schedulable_down, tg_set_cfs_bandwidth),
// kernel/cgroup/cpuset.c and cpuset-v1.c (validate_change), KEP-2254, seeds 000
// and 002; S. Rosenbaum, "Tables for a nonparametric test of location" (1954), for
// the longest in [Judge].
package remedy
