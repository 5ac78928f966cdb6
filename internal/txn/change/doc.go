// Package change says which settings to write, and in which order the kernel accepts the writes. It is pure.
//
// Problem: a remedy is a handful of settings in several cgroups. The kernel accepts them only in some orders, and some
// orders leave tasks without a CPU, or without a limit, for a moment. A rollback has the same problem mirrored, and two
// remedies may have changed the same setting.
//
// Rule 1, order ([Order]). At every single step the kernel accepts the write and every task has a CPU:
//
//  1. create cgroups and enable controllers, from the top down;
//  2. lower limits, child first (v1: no child above its parent), burst before quota;
//  3. grow each CPU and memory-node set to the union of its old and new value, from the top down;
//  4. move processes, into sets that now hold CPUs and memory nodes;
//  5. shrink the sets to their new values, from the bottom up (v1: no child outside its parent);
//  6. raise limits, parent first, burst after quota;
//  7. write weights and other files;
//  8. give threads a real-time policy; they lose one before step 2;
//  9. disable controllers and remove cgroups, from the bottom up.
//
// Limits fall before the sets change and rise after them. So a container that trades its quota for exclusive CPUs is
// never unlimited on shared ones, neither when the remedy is applied nor when it is rolled back. One function orders both
// directions: a rollback is a list of changes with From and To exchanged. If other programs made a part of a rollback
// impossible, [OrderPossible] orders the rest.
//
// Rule 2, sharing ([Fold]). Several transactions may hold one setting. Its value is the fold of the original value with
// what the holders do, in the order in which they came: "set" replaces the value, "remove_cpus" removes CPUs.
//
// Worked example: /pods has 0-7. One pin removes 6-7, a second 4-5: 0-3. The rollback of the first leaves
// fold(0-7, remove 4-5) = 0-3,6-7. The rollback of the second leaves 0-7. To order /pods 0-7 to 0-3 with its child
// /pods/a 0-7 to 0-1: nothing has to grow; first /pods/a to 0-1, then /pods to 0-3. Rolled back: first /pods to 0-7, then
// /pods/a to 0-7.
//
// Limits: sets with cpuset.cpu_exclusive (v1) and partitions (v2) refuse the overlap of step 3; no plan may change them.
// Order knows only the settings that it is given. If the present state and the wanted state are each acceptable to the
// kernel as a whole, every step between them is.
//
// Sources: kernel/cgroup/cpuset-v1.c (validate_change_legacy), cpuset.c (validate_change, update_cpumasks_hier),
// kernel/sched/core.c (tg_cfs_schedulable_down, tg_set_cfs_bandwidth), kernel/cgroup/cgroup.c
// (cgroup_vet_subtree_control_enable).
package change
