// Package apply carries out a list of changes as one transaction that can be taken back, whatever happens between. It
// knows nothing of remedies: they plan, this writes.
//
// Problem: changing a container's CPUs means a dozen writes in several cgroups that belong to others as well. Any of
// them may fail, the process may die between two, the container may end, somebody else may write the same files.
//
// Rules:
//
//  1. Everything that can be checked is checked before the first write: scope, values, stale plans, processes that
//     cannot be moved, room in the journal.
//  2. Each write is in the journal (package journal) before it is done, and is read back after. The order is
//     change.Order's: accepted by the kernel at every step, no task ever without a CPU.
//  3. If a write fails, the transaction is taken back at once ("undone"). If the process dies, the next Apply, Recover
//     or Restore does it.
//  4. Several transactions may hold one setting: its value is the fold of the original with what the holders do
//     (change.Fold). Taking one back leaves the others in force.
//  5. Taking back is no replay. A setting is written only if its value is still ours; otherwise it is left and
//     reported. So is one whose cgroup is gone, was made anew (the inode differs), or belongs to an earlier life of the
//     machine (the boot id differs). What is refused stays in force with its reason (NotRestored) and its transaction
//     open; everything else is taken back.
//  6. Nothing outside Env.Scope is written, by Apply or by Restore.
//  7. Transactions may take the place of others (Replace): the values go straight from the old ones' to the new ones',
//     the old ones end in the same record that commits the new ones, and what was before any of us is kept.
//
// Worked example: /pods/b has 0-7. A pin of 6-7 and one of 4-5 leave it 0-3. A stranger sets it to 0-1. Taking back
// the first pin: 0-1 is not ours, it stays, Skipped says so, and everything else of that pin is put back.
//
// After the last write the CPUs in force are read back, and the affinity of the threads. No CPU wanted in force (v2
// takes lists that the parent does not have): the transaction fails and is undone. Some: a warning. Threads with an
// affinity of their own: a warning, because the kernel keeps what a program asked for.
//
// Moving processes: whole ones by cgroup.procs, again and again until a look finds none (forks race), at most 64 times
// or 5 s. Refused: processes outside our PID namespace, and all if that is not the machine's initial one (v1 leaves
// out of cgroup.procs whom it does not show), the kernel's own, ones whose threads are in several cgroups.
// Taking back moves all that is in the cgroup made for them by then, and removes it.
//
// Scheduling policies: a change of a cgroup's threads becomes one for each ordinary thread there is, known by number and
// start time, and one for the rest, whose entry comes first: children inherit the policy, and whoever has it in the
// cgroup when it is taken back loses it, those born between two writes among them. A thread that left the cgroup is
// found by its number; the children of such a one are not. Refused where a program sets real-time policies itself, so
// that none of its own can be taken for ours.
//
// A damaged journal: what its intact lines say is done. Where the entry of a write is lost, a value is ours if it is
// what the holders make of the original; where a beginning is lost, the last value before ours is reported and left.
// Warnings say so until Restore, not called for transactions by id, has returned *Damaged for it.
//
// systemd: properties of units are set as runtime ones. A list (AllowedCPUs) is also written to the file behind it,
// because systemd cannot empty that. A reboot ends both. A unit that is gone is skipped; without a manager on D-Bus the
// transaction stays open until there is one. A unit's quota is refused where the files of its cgroup say something else
// (UnitDiffers): they were written past systemd, and could not be brought back.
//
// Limits. Before 7.0 the kernel refuses to empty a v2 list while processes are inside (ENOSPC, validate_change): what
// was empty is then given all that its parent has in force, which is the same as long as the parent's does not change,
// and Skipped says so. A cgroup that was created is taken for ours if we died between the entry and its id; a stranger
// would have had to make one of the same name in that moment. Between looking at a value and writing it, a stranger's
// write can be lost: the kernel has no compare-and-swap. A journal that cannot be written stops everything: what is
// half done is taken back if the journal recovers, and else left for restore.
//
// Sources: design.md (Journal v1); kernel/cgroup/cpuset.c (validate_change, cpuset_attach), kernel/sched/core.c;
// include/linux/proc_ns.h (PROC_PID_INIT_INO), kernel/cgroup/cgroup-v1.c (pidlist_array_load);
// systemd#43846.
package apply
