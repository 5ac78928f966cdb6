// Package lab describes the guests that the lab boots: how many CPUs, in which
// sockets, cores and threads, which of them share an L3 cache or a NUMA node,
// and the QEMU command line that makes such a machine.
//
// Problem: unthrottle's users run hosts with dozens of CPUs, several L3s and
// NUMA nodes on cgroup v2. The machines it is built on have two CPUs. A kernel
// under QEMU without KVM has as many CPUs as it is told, and its scheduler
// throttles for real.
//
// Rule: a Machine says what is wanted in QEMU's words; Arguments turns it into
// the command line, a pure function. Threads of a core have adjacent numbers,
// then cores, then L3 groups (QEMU's modules), then sockets.
//
// Example: "16,sockets=2,cores=4,threads=2" with one L3 per socket is CPUs 0-7
// on socket 0 and NUMA node 0, 8-15 on socket 1 and node 1; 0 and 1 are the
// threads of one core; the L3s are [0-7] and [8-15]. With two L3s per socket
// the L3s are [0-3] [4-7] [8-11] [12-15] and a socket still is one die.
//
// Limits: x86-64. Under TCG only Intel models show the caches asked for (AMD's
// topoext is masked). Numbering with siblings N/2 apart, as bare metal often
// has, cannot be had: tests for it use fake trees. Guest time is host time, but
// CPU time is short: 16 CPUs share what the host has, so that only counters,
// shares and shapes mean anything inside, never milliseconds.
//
// The rooms beside it: fetch brings QEMU and kernels, cpio writes the
// initramfs, guest is process 1 inside, wire is what both sides say, boot runs
// a guest to its end, suite builds and runs the tree's tests in one, results
// reads what tests said, require is for test authors.
//
// Sources: QEMU 10.0 docs/system/qemu-manpage (-smp, -numa, smp-cache), the
// kernel's Documentation/arch/x86/topology.rst and admin-guide/
// kernel-parameters.txt.
package lab
