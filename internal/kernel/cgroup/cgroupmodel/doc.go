// Package cgroupmodel keeps the kernel's cgroup rules in memory, for writes of cpu and cpuset settings. It implements
// cgroup.FS for tests.
//
// # Problem
//
// Code that changes settings must be right at every point where it can be killed, for every order of writes, in every
// shape of tree, on both versions of the interface. Real cgroups are too slow for thousands of such runs and exist in
// one version per machine. A test that breaks them harms the machine. A fake that accepts everything proves nothing,
// because the kernel's refusals make the order of writes matter.
//
// # Rule
//
// [Kernel] keeps the trees, settings and processes, and refuses what the kernel refuses, with the same errno.
//
//   - v1: a child's quota ratio above its parent's (EINVAL), also when a parent falls.
//   - v1: a child's CPUs outside its parent's (EACCES); a parent shrunk below a child (EBUSY).
//   - v1: an empty list with tasks inside (ENOSPC); a task moved into an empty cpuset (ENOSPC).
//   - v1: overlap with an exclusive sibling (EINVAL).
//   - v2: files exist only where cgroup.subtree_control of the parent has the controller.
//   - v2: CPUs beyond the parent's are accepted but not in force.
//   - v2: thread roots, threaded and invalid domains.
//   - Both: bounds of quota, period and burst; rmdir of a cgroup in use.
//
// [Kernel.Before] stops between any two operations. [Kernel.Snapshot] and [Snapshot.Diff] show whether all is
// byte-identical. [Kernel.Check] reports a task without a CPU.
//
// # Example
//
//	k := cgroupmodel.New(cgroupmodel.V1("0-3"))
//	k.Make(cgroup.CPUSet, "/a")
//	k.Write(cgroup.CPUSet, "/a", "cpuset.cpus", "0-1")
//	k.Make(cgroup.CPUSet, "/a/b")
//	k.Write(cgroup.CPUSet, "/a/b", "cpuset.cpus", "1-2")
//	// cgroup /a/b: cpuset.cpus: kernel refused 1-2: outside the parent's 0-1 (permission denied)
//
// # How far to trust it
//
// A differential test runs random operations on the model and on the real kernel below a cgroup of its own. It compares
// every errno and every value afterwards: on a v1 host, and on v2 where the lab offers one.
//
// # Limits
//
// Not modelled:
//
//   - v2 partitions (cpuset.cpus.partition reads "member"), CPU hotplug,
//   - real-time and deadline bandwidth, cpu.idle,
//   - single threads moved apart from their process,
//   - delegation and permissions,
//   - controllers other than cpu, cpuset and cpuacct. So "no internal processes" shows only for cpu and cpuset, which
//     are threaded controllers.
//
// Counters do not change by themselves; tests set them by [Kernel.Pin].
//
// # Sources
//
// Linux kernel/sched/core.c (tg_set_cfs_bandwidth, tg_cfs_schedulable_down), kernel/cgroup/cpuset.c and cpuset-v1.c
// (validate_change, cpuset1_validate_change, cpuset_can_attach), kernel/cgroup/cgroup.c (cgroup_migrate_vet_dst,
// cgroup_vet_subtree_control_enable, cgroup_enable_threaded, cgroup_destroy_locked), lib/bitmap-str.c.
package cgroupmodel
