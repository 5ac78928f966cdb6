// Package jvm runs a real Java virtual machine that allocates, and reads its
// pauses from its GC log.
//
// # Problem
//
// A model of a garbage collector shows what its author thinks of one. Where a JVM
// is installed, the experiment can use the real one.
//
// # Rule
//
// The program is one small class. The JVM gets it as an archive in memory
// (memfd_create(2)), so that no file stays behind. The parallel collector has as many
// threads as the scenario says: -XX:ParallelGCThreads overrides what the JVM would
// derive from the host.
//
// The JVM ends when its standard input closes, which the kernel closes when the parent
// has ended. An alarm kills a JVM that hangs. The child sets it before execve(2), and
// it stays in force (setitimer(2)).
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
