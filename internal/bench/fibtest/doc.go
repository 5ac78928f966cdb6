// Package fibtest tells which behaviour of the kernel this host has, by Indeed's
// reproducer.
//
// # Problem
//
// From 4.18 to 5.3 the kernel let what a CPU had left of its slice of quota
// expire at the end of a period: up to 1 ms on each CPU. A container with threads
// on many CPUs was throttled all the time and could not use its quota. Kernel
// versions don't tell: distributions carry the fix back, or the fault.
//
// # Rule
//
// One thread burns, pinned to a CPU; on every other CPU one runs for a moment and
// sleeps 10 ms, under 10 ms per 100 ms. Either way the group is throttled all the
// time. Where slices expire it gets less than its quota. How much less depends on
// the number of CPUs; so both behaviours are simulated for this host's CPUs and
// ticks, and what is measured is compared with the two ranges.
//
// Where fewer than 8 CPUs can be used, half the quota is tried too: what expires is
// then a larger share.
//
// # Worked example
//
// On 2 CPUs at 250 Hz and 10 ms, 1.00 to 1.01 of the quota can be used where slices
// are kept and 0.91 to 0.93 where they expire; with 5 ms 1.00 to 1.02 and 0.83 to 0.91.
// Measured 1.00 and 1.01: fixed.
//
// # Limits
//
// It says nothing where one thread alone does not get its quota (the host is too
// busy), where the two ranges overlap, or where the measure lies between them.
// The fault of kernels before 4.18, clocks that differ, is another one.
//
// Sources: seed 001, and the reproducer that it describes; the fix is de53fd7aedb1
// in 5.4.
package fibtest
