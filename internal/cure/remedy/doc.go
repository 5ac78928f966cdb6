// Package remedy plans what ends throttling: which settings to write, what effect to expect, and why not where a remedy
// must not be applied. It is pure: package hoststate gives it the host, package apply writes its plans and rolls them
// back.
//
// # The problem
//
// A quota stops a whole container because some of its threads spent it. A remedy takes the quota away and keeps its
// purpose: a bound on the container, and no harm to its neighbours. For that, settings of several cgroups have to change
// together: the quotas of the container and its ancestors, its cpuset, and the cpusets of others. Other programs own some
// of these, and some must be left alone.
//
// # The rule
//
// [Make] is a function of hoststate.Facts (one reading of the host), a container and a [Request]. Where a remedy must not
// be applied the answer is a [*Refused], which names the reason, the cgroups and the way out. While a transaction in force
// cannot be read, every planner returns an [*Unreadable]: its CPUs are unknown, and could be given away twice.
//
//   - pin: ceil(limit) CPUs, chosen by package placement among those that the container may use and nothing else claims.
//     Claimed are the reserve, isolated CPUs, other pins, v2 partitions and cpuset.cpus.exclusive, v1 exclusive cpusets,
//     cpusets that another program made narrower than their parent's, and what the kubelet's static policy gave out. The
//     plan removes the CPUs from every other cpuset that has them. It is refused where the remaining CPUs are fewer than
//     the others need: the larger of their summed requests and their measured use, for every group of containers that
//     shares the remaining CPUs.
//   - narrow: ceil(limit) CPUs that others may use too, close together and the least loaded. The quota goes if it is a
//     whole number of CPUs; otherwise it stays, in short periods.
//   - burst keeps the quota. Refused at 95 % mean use and above, because no quota is left over that later periods could
//     spend.
//   - weight takes the quota away and leaves the weight.
//   - secondary gives idle weight and takes the quota away. Its cpuset, and those above it, get the CPUs that pins share.
//     A cpuset that the plan creates leaves out the CPUs that others have alone.
//   - system ([ConfineSystem], for no container) confines the host's own slices to the reserve, unless they hold
//     containers, limited units or units with their own CPUs. The reserve follows their measured use.
//   - raise multiplies the limit (by 2) or sets it; at most to the host's CPUs.
//
// Ancestors. An ancestor's quota still binds if the CPUs usable below it reach it: those of the target, and the quotas or
// exclusive CPUs of the other children on each level. The plan lifts it only if every other child on that level has a
// quota or exclusive CPUs of its own, and only on pod level or below a cgroup that the user named. Otherwise it refuses,
// and names the children that would become unlimited. raise gives an ancestor the difference instead.
//
// Sharing. Several transactions may rest on one setting. A plan removes CPUs from a set by an operation that several
// transactions can hold (package change), also from the set of another pinned container: if the other pin is rolled back
// first, its cpuset must not grow onto this pin's CPUs. A transaction that needs an ancestor's limit, a created cgroup or
// an enabled controller of another transaction holds it too.
//
// # Worked example
//
// Four CPUs, two threads a core; web (limit 1) and db in /a, a slice beside. The reserve is CPUs 0-1. web gets CPU 2. The
// plan says that the CPU shares a core: /a/web 0-3 to 2, /a/db and /slice lose 2, web's quota goes. If db requested 2 CPUs
// and the slice 1.5, they would have 3 CPUs for 3.5: refused. On two CPUs the reserve is CPU 0 and web gets CPU 1.
//
// # Limits
//
//   - Processes in the root cpuset stay there and are counted: on v1 hosts with systemd these are all services. Processes
//     in another ancestor (v1) make pin refuse. In a PID namespace other than the host's, v1 hides processes: a pin that
//     would have to move some is refused, the others say that they cannot count (Facts.HiddenProcesses).
//   - A plan protects against containers that exist. [Reconcile] moves containers that appear later. On v1, runtimes copy
//     a shrunken parent's CPUs into new containers, which keep them after the rollback of the pin.
//   - Weights that differ from the default (in pods: all weights) are read as requests. v2 weights do not tell which
//     formula made them; see podRequest.
//   - This package does not check the affinity that threads chose; package apply reads back where each may run.
//
// Sources: kernel/sched/core.c (tg_cfs_schedulable_down, tg_set_cfs_bandwidth),
// kernel/cgroup/cpuset.c and cpuset-v1.c (validate_change), KEP-2254, seeds 000 and 002.
package remedy
