// Package rebalance carries out moves: containers that have CPUs by a pin or narrow of ours get other CPUs, one container
// after the other, while they run.
//
// # Problem
//
// After containers came and went, one may sit on two sockets although it would fit on one if another made room. Package
// placement plans that. To carry the plan out is to change several cpusets, one after another, on a host where containers
// come and go and where any write may fail or be killed.
//
// # Rule
//
// Each move is a transaction that takes the place of the one before (apply.Replace). Apply journals it before it writes,
// widens sets to the union before it narrows them, reads them back, and rolls back if a write fails. The host is read
// again before each move. A move ends the run if its CPUs are no longer free or its container is elsewhere. After a move
// every thread is checked to run inside the new CPUs; then there is a pause.
//
// Two containers that exchange CPUs do so by way of free CPUs, step by step; package placement plans those steps. Only
// where it found none do two exclusive sets overlap, during a few writes: both moves are one transaction each, committed
// together. That is refused where one write took so long that the overlap could last longer than [maxOverlap].
//
// A container is not moved, and [Immovable] says why, if some of its threads chose their CPUs. Since Linux 6.2 the kernel
// keeps such a choice across a change of the cpuset as far as it can, and these threads may then all end up on one CPU.
// Nor is it moved if the user asked for that (--stays), or if it is in a cpuset that another program confined.
//
// # Example
//
// Two sockets, 0-3 and 4-7. a has 1-2, b has 3-4, c has 5-6. The plan: c to 6-7 (gain 0, makes room), b to 4-5 (one socket
// less). If the process is killed between the two, a and b are where they were, c is on 6-7, and everything is in force
// and exclusive. `unthrottle restore` restores the state before the pins.
//
// # Limits
//
// Only containers that we placed are moved. Whether a moved container is better off is not measured here. Memory stays
// where it is, unless Follow asks to move it.
//
// Sources: kernel/cgroup/cpuset.c (cpuset_update_tasks_cpumask), commit
// da019032819a "sched: Enforce user requested affinity" (6.2).
package rebalance
