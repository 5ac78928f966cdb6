// Package change says what is to be written where, and in which order the kernel accepts it. It is pure.
//
// Problem: a remedy is a handful of settings in several cgroups. The kernel accepts them in some orders only, and
// some orders leave tasks without a CPU, or without a limit, for a moment. Taking a remedy back has the same trouble
// mirrored, and two remedies may have changed the same setting.
//
// Rule 1, order ([Order]). At every single step the kernel must accept the write and every task must have a CPU:
//
//  1. cgroups are created and controllers enabled, from the top down;
//  2. limits that fall, child first (v1: no child above its parent), burst before quota;
//  3. CPU and memory-node sets grow to the union of what they are and what they become, from the top down;
//  4. processes move, into sets that hold CPUs and memory nodes by now;
//  5. sets shrink to what they become, from the bottom up (v1: no child outside its parent);
//  6. limits that rise, parent first, burst after quota;
//  7. weights and other files;
//  8. threads get a real-time policy, they lose it before anything else;
//  9. controllers are disabled and cgroups removed, from the bottom up.
//
// Falling limits stand before the sets and rising ones behind them, so that a container which trades its quota for
// exclusive CPUs is never unlimited on shared ones, neither on the way in nor on the way back. The same function
// orders both directions: an undo is a list of changes with From and To exchanged. Of an undo that others have made
// impossible in part, [OrderPossible] orders the rest.
//
// Rule 2, sharing ([Fold]). Several transactions may hold one setting. Its value is the fold of the original value
// with what the holders do to it, in the order they came: "set" replaces, "remove_cpus" takes CPUs out.
//
// Worked example: /pods has 0-7. One pin takes 6-7 out of it, a second 4-5: 0-3. Taking back the first leaves
// fold(0-7, remove 4-5) = 0-3,6-7; taking back the second as well leaves 0-7. Ordering /pods 0-7 to 0-3 with its
// child /pods/a 0-7 to 0-1: nothing has to grow; then /pods/a to 0-1, then /pods to 0-3. Taken back: /pods to 0-7,
// then /pods/a to 0-7.
//
// Limits: sets with cpuset.cpu_exclusive (v1) and partitions (v2) refuse the overlap of step 3; they are never ours
// to change. Order looks at the settings it is given only: where the present state and the wanted one are each
// acceptable to the kernel as a whole, every step between is.
//
// Sources: kernel/cgroup/cpuset-v1.c (validate_change_legacy), cpuset.c (validate_change, update_cpumasks_hier),
// kernel/sched/core.c (tg_cfs_schedulable_down, tg_set_cfs_bandwidth), kernel/cgroup/cgroup.c
// (cgroup_vet_subtree_control_enable).
package change
