// Package topology describes the CPUs of a machine. It shows which hardware threads share a core, an L3 cache, a NUMA
// node, a die or a socket, and which of them are offline, isolated, fast or slow.
//
// # Problem
//
// The kernel's numbers do not show this. Core numbers repeat in every socket, package numbers may be -1, and one L3 may
// appear under several cache ids. The threads of a core may be neighbours (0 and 1) or half the machine apart (0 and
// 56). CPUs may be missing, offline, or more than a socket's share.
//
// # Rule
//
// Two CPUs are in one group exactly where the kernel's sibling lists of that level are equal. The groups get numbers of
// ours, from 0, in the order of their lowest CPU; NUMA nodes keep the kernel's numbers. Nothing is computed from counts
// or averages. A group that the kernel does not show is [Unknown] (null in JSON), never 0:
//
//	level      file below /sys/devices/system
//	socket     cpu/cpuN/topology/package_cpus_list, before 5.3 core_siblings_list
//	die        cpu/cpuN/topology/die_cpus_list
//	cluster    cpu/cpuN/topology/cluster_cpus_list
//	core       cpu/cpuN/topology/core_cpus_list, before 5.3 thread_siblings_list
//	L3         cpu/cpuN/cache/indexM/shared_cpu_list, of level 3 and type Unified
//	NUMA node  node/nodeN/cpulist
//
// If a list is missing, its mask has the same content: core_cpus, thread_siblings, shared_cpu_map, cpumap and so on.
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
// If a kernel knows no dies, die_id is -1 and die_cpus_list is the CPU itself. The same holds for cluster_id and
// cluster_cpus_list. A level with a negative number is Unknown, and so is one that separates the threads of a core.
//
// # Limits
//
// CPU ids are below 8,192, node numbers below 1,024, a file has at most 64 KiB. The kernel lists only online CPUs as
// siblings, so the groups of an offline one are unknown. A sibling list that is empty, or lacks its own CPU, counts as
// missing. In a virtual machine the hypervisor determines all of this.
//
// # Sources
//
// Documentation/admin-guide/cputopology.rst and Documentation/ABI/stable/sysfs-devices-node of Linux;
// drivers/base/topology.c, cacheinfo.c and node.c (v6.18).
package topology
