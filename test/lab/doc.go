// Package lab describes the guests that the lab boots. It says how many CPUs they have, in which sockets, cores and
// threads, and which CPUs share an L3 cache or a NUMA node. It makes the QEMU command line of such a machine.
//
// Problem: unthrottle's users run hosts with dozens of CPUs, several L3s and NUMA nodes on cgroup v2. The machines it
// is built on have two CPUs. A kernel under QEMU without KVM has as many CPUs as the command line says, and its
// scheduler really throttles.
//
// Rule: a Machine uses QEMU's words; Arguments, a pure function, turns it into the command line. Threads of a core have
// adjacent numbers, then cores, then L3 groups (QEMU's modules), then sockets.
//
// Example: take "16,sockets=2,cores=4,threads=2" with one L3 per socket. CPUs 0-7 are on socket 0 and NUMA node 0, CPUs
// 8-15 on socket 1 and node 1. CPUs 0 and 1 are the threads of one core; the L3s are [0-7] and [8-15]. With two L3s per
// socket the L3s are [0-3] [4-7] [8-11] [12-15], and a socket is one die as before.
//
// Limits:
//
//   - x86-64 only. Under TCG only Intel models show the requested caches (AMD's topoext is masked).
//   - Siblings are never N/2 apart, as they often are on bare metal; tests for that numbering use fake trees.
//   - Guest time is host time, but 16 CPUs share those of the host. So only counters, shares and shapes have a meaning
//     inside, never milliseconds.
//
// The packages beside it: fetch brings QEMU and kernels, guest is process 1 inside. wire has
// the messages between the two sides, boot runs a guest to its end, suite builds and runs the tree's tests in one.
// results reads the tests' output; require is for test authors.
//
// Sources: QEMU 10.0 docs/system/qemu-manpage (-smp, -numa, smp-cache), the kernel's
// Documentation/arch/x86/topology.rst and admin-guide/kernel-parameters.txt.
package lab
