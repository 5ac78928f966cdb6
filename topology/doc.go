// Package topology describes the CPUs of a machine: which hardware threads
// share a core, an L3 cache, a NUMA node, a die, a socket, and which of them
// are offline, isolated, fast or slow.
//
// # Problem
//
// The kernel's numbers do not tell this. Core numbers repeat in every socket,
// package numbers may be -1, one L3 may appear under several cache ids, the
// threads of a core may be neighbours (0 and 1) or half the machine apart (0
// and 56), and CPUs may be missing, offline, or more than a socket's share.
//
// # Rule
//
// Two CPUs are in one group exactly where the kernel's sibling lists of that
// level are equal. The groups get numbers of ours, from 0, in the order of
// their lowest CPU; NUMA nodes keep the kernel's numbers. Nothing is computed
// from counts or averages. What the kernel does not say is [Unknown] (null in
// JSON), never 0:
//
//	level      file below /sys/devices/system
//	socket     cpu/cpuN/topology/package_cpus_list, before 5.3 core_siblings_list
//	die        cpu/cpuN/topology/die_cpus_list
//	cluster    cpu/cpuN/topology/cluster_cpus_list
//	core       cpu/cpuN/topology/core_cpus_list, before 5.3 thread_siblings_list
//	L3         cpu/cpuN/cache/indexM/shared_cpu_list, of level 3 and type Unified
//	NUMA node  node/nodeN/cpulist
//
// Where a list is missing its mask tells the same: core_cpus, thread_siblings,
// shared_cpu_map, cpumap and so on.
//
// # Example
//
// 2 sockets, each with 1 core of 2 threads numbered 0,2 and 1,3:
//
//	cpu0/topology/core_cpus_list  0,2    core 0, socket 0
//	cpu1/topology/core_cpus_list  1,3    core 1, socket 1
//	cpu2/topology/core_cpus_list  0,2    core 0, socket 0
//	cpu3/topology/core_cpus_list  1,3    core 1, socket 1
//
// The kernel's own core_id is 0 in all four.
//
// # Levels that a machine lacks
//
// Where a kernel knows no dies, die_id is -1 and die_cpus_list the CPU itself;
// so are cluster_id and cluster_cpus_list. A level whose number is negative is
// Unknown, and so is one that has the threads of a core apart.
//
// # Limits
//
// CPU ids are below 8,192, node numbers below 1,024, a file is at most 64 KiB.
// The kernel lists only online CPUs as siblings, so an offline one is of no
// known group. An empty sibling list, or one that lacks the CPU whose it is,
// tells nothing. In a virtual machine all of this is what the hypervisor says.
//
// # Sources
//
// Documentation/admin-guide/cputopology.rst and Documentation/ABI/stable/sysfs-devices-node
// of Linux; drivers/base/topology.c, cacheinfo.c and node.c (v6.18).
package topology
