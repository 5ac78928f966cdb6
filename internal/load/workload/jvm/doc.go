// Package jvm runs a real Java virtual machine that allocates, and reads its
// pauses from its GC log.
//
// # Problem
//
// A model of a garbage collector shows what its author thinks of one. Where a JVM
// is installed, the real one can be asked.
//
// # Rule
//
// The program is one small class, given to the JVM as an archive in memory
// (memfd_create(2)), so that no file is left behind, whatever the JVM dies of. The
// parallel collector has as many threads as the scenario says; what the JVM itself
// would take on a host is what -XX:ParallelGCThreads overrides. It ends when its
// standard input does, which the kernel closes when the parent is gone; should it
// be stuck, an alarm set before it was executed kills it (setitimer(2) outlives
// execve(2)).
//
// # Worked example
//
//	[1.234s][info][gc] GC(7) Pause Young (Allocation Failure) 44M->12M(124M) 8.123ms
//
// is a pause of 8.123 ms. "Concurrent" lines are none.
//
// # Limits
//
// JVMs from 9 on (unified logging). At most [MaxPauses] pauses. A pause counts
// when its line arrives, at its end.
package jvm
