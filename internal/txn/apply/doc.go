// Package apply carries out a list of changes as one transaction, and rolls it back, whatever happens in between. It
// knows nothing of remedies: planners decide what to write, this package writes it.
//
// Problem: to change a container's CPUs takes a dozen writes in several cgroups, some of which belong to other programs.
// Any write may fail. The process may die between two writes. The container may end. Another program may write the same
// files.
//
// Rules:
//
//  1. Before the first write, Apply checks everything that it can: the scope, the values, stale plans, processes that
//     cannot be moved, room in the journal.
//  2. Apply journals each write (package journal) before it makes it, and reads the value back afterwards. change.Order
//     gives the order: the kernel accepts every step, and no task is ever without a CPU.
//  3. If a write fails, Apply rolls the transaction back at once ("undone"). If the process dies, the next Apply, Recover
//     or Restore rolls it back.
//  4. Several transactions may hold one setting. Its value is the fold of the original value with what the holders do
//     (change.Fold). A rollback of one transaction leaves the others in force.
//  5. A rollback is no replay. It writes a setting only if the value is still the one that we left. Otherwise it leaves
//     the setting and reports it. It also leaves a setting whose cgroup is gone, whose cgroup was created anew (another
//     inode), or that was written before a reboot (another boot id). What the kernel refuses stays in force with its
//     reason (NotRestored), and its transaction stays open. The rollback goes on with everything else.
//  6. Apply and Restore write nothing outside Env.Scope.
//  7. Replace puts transactions in the place of others. The values go straight from the old ones to the new ones, one
//     journal record ends the old transactions and commits the new ones, and the original values are kept.
//  8. A transaction may be on trial (txn.Purpose.Trial) until Keep. If the process that judges it ends first, or is overdue
//     by trialGrace, the next Apply, Recover or Restore rolls it back. What belongs to a transaction on trial
//     (txn.Purpose.BelongsTo), or replaces it, shares its trial.
//
// Worked example: /pods/b has 0-7. A pin of 6-7 and a pin of 4-5 leave it 0-3. Another program sets it to 0-1. The
// rollback of the first pin finds 0-1, which is not ours. It leaves it, reports it in Skipped, and restores the rest.
//
// One type implements each kind of setting (see setting): file, unitProperty, createdCgroup, processes, subtreeControl,
// interrupt, policy, width. A new kind is a new file and one line in world.kind.
//
// After the last write, Apply reads the CPUs in force and the affinity of the threads. If none of the wanted CPUs is in
// force, the transaction fails: v2 accepts lists that the parent does not have. If some are missing, Apply warns. It also
// warns about threads with an affinity of their own, because the kernel keeps what a program asked for.
//
// Processes move as a whole through cgroup.procs. Forks race with the move, so Apply lists them again until a listing
// finds none, at most 64 times or 5 s. It refuses processes outside our PID namespace, kernel threads, and processes
// whose threads are in several cgroups. Outside the machine's initial PID namespace it refuses all, because v1 does not
// list processes that the namespace hides. The rollback moves everything that is then in the created cgroup, and removes
// the cgroup.
//
// A change of the scheduling policy of a cgroup becomes one change for each ordinary thread, known by number and start
// time, and one for the rest. The entry of the rest comes first in the journal, because children inherit the policy. On
// rollback every thread in the cgroup that has the policy loses it, including threads created while it was applied. A
// thread that left the cgroup is found by its number; its children are not. Apply refuses where the program sets
// real-time policies itself, because the rollback could not tell them from ours.
//
// A cap of a cgroup's width is in force as long as the process that holds the sched_ext scheduler runs. When that process
// ends, the kernel forgets the cap and enforces the quota again, which the plan left in place. Drift then reports the cap,
// and a rollback has nothing to write.
//
// A damaged journal: Apply follows the intact lines. Where the entry of a write is lost, a value is ours if the holders
// make it of the original. Where a beginning is lost, Restore reports the value before our last write and leaves the
// setting. Warnings say so until a Restore of all transactions has returned *Damaged.
//
// systemd: Apply sets properties of units at run time, so that a reboot ends them. It writes a list (AllowedCPUs) also to
// the file, because systemd cannot empty it. It skips a unit that is gone. Without a manager on D-Bus the transaction
// stays open until there is one. It refuses a unit's quota where the cgroup's files have another one (UnitDiffers): the
// rollback could not restore that.
//
// Limits. Before 7.0 the kernel refuses to empty a v2 list while processes are inside (ENOSPC, validate_change). The
// rollback then writes all CPUs of the parent, which is the same until the parent changes, and Skipped says so. If the
// process dies between the journal entry and the creation of a cgroup, a cgroup that another program creates there in
// that moment counts as ours. Another program's write between our read and our write is lost: the kernel has no
// compare-and-swap. If the journal cannot be written, everything stops: Apply rolls back if the journal recovers, else
// restore does.
// Where the end of a trial is damaged in the journal, the transaction is on trial again, and the next writer rolls it back.
// Of a process in another PID namespace only the time is known.
//
// Sources: design.md (Journal v1); kernel/cgroup/cpuset.c (validate_change, cpuset_attach), kernel/sched/core.c;
// include/linux/proc_ns.h (PROC_PID_INIT_INO), kernel/cgroup/cgroup-v1.c (pidlist_array_load);
// systemd#43846.
package apply
