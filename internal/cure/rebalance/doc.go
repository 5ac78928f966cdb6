// Package rebalance carries out moves: containers that have CPUs by a pin or narrow
// of ours are given other ones, one after the other, while they run.
//
// # Problem
//
// After containers came and went, one may sit on two sockets although it would
// fit on one, if another made room. The plan for that is package placement's.
// To carry it out is to change, several times, who may run where, on a host
// where containers come and go meanwhile and anything can fail or be killed.
//
// # Rule
//
// Each move is a transaction that takes the place of the one before
// (apply.Replace): in the journal before it is written, sets widened to the
// union before they are narrowed, read back, taken back if a write fails. The
// host is looked at anew before each move, and a move whose CPUs are not free
// any more, or whose container is not where it was, ends the run. After a move
// every thread is checked to run inside the new CPUs, then there is a pause.
//
// Two that must change places do so by way of free CPUs, step by step; package
// placement plans those. Only where it found none do two exclusive sets overlap,
// for the time of the few writes between: both moves are one transaction each,
// committed at once. That is refused where one write has taken so long that the
// overlap could last more than [MaxOverlap].
//
// A container is not moved, and [Immovable] says why, if threads of it chose CPUs
// for themselves: since Linux 6.2 the kernel keeps such a choice across a change
// of the cpuset as far as it can, and then those threads may all end up on one
// CPU. Nor if it asked not to be (--immovable), or lives in a cpuset that somebody
// else confined.
//
// # Example
//
// Two sockets, 0-3 and 4-7. a has 1-2, b has 3-4, c has 5-6. The plan: c to 6-7
// (gain -0, makes way), b to 4-5 (one socket less). Killed between the two, a
// and b are where they were, c is on 6-7, everything in force and exclusive;
// `unthrottle restore` puts back what was before the pins.
//
// # Limits
//
// Nothing is moved that we did not place. Whether a container that was moved is
// better off is not measured here. Memory stays where it is unless it was asked
// to follow (Follow).
//
// Sources: kernel/cgroup/cpuset.c (cpuset_update_tasks_cpumask), commit
// da019032819a "sched: Enforce user requested affinity" (6.2).
package rebalance
