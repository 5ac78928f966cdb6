// Package cgroupmodel is the kernel's cgroup rules in memory, as far as writes of cpu and cpuset settings are
// concerned: an implementation of cgroup.FS for tests.
//
// # Problem
//
// What changes settings must be right at every point where it can be killed, for every order of writes, in every
// shape of tree, on both versions of the interface. Real cgroups are too slow for thousands of such runs, exist in
// one version per machine, and a test that breaks them harms the machine. A fake that accepts everything proves
// nothing: the kernel's refusals are what makes the order of writes matter.
//
// # Rule
//
// [Kernel] keeps the trees, settings and processes, and refuses what the kernel refuses with the same errno. On v1:
// a child's quota ratio above its parent's (EINVAL), also when a parent falls; a child's CPUs outside its parent's
// (EACCES); a parent shrunk below a child (EBUSY); an empty list with tasks inside (ENOSPC); a task moved into an
// empty cpuset (ENOSPC); overlap with an exclusive sibling (EINVAL). On v2: files only where cgroup.subtree_control
// of the parent has the controller; CPUs beyond the parent's are taken but not in force; thread roots, threaded and
// invalid domains. On both: bounds of quota, period and burst, rmdir of what is in use. [Kernel.Before] stops between
// any two operations; [Kernel.Snapshot] and [Snapshot.Diff] show that all is byte-identical; [Kernel.Check] that no
// task is without a CPU.
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
// A differential test runs random operations on the model and on the real kernel below a cgroup of its own and
// compares every errno and every value afterwards: on a v1 host, and on v2 where the lab offers one.
//
// # Limits
//
// Not modelled: v2 partitions (cpuset.cpus.partition reads "member"), CPU hotplug, real-time and deadline bandwidth,
// cpu.idle, single threads moved apart from their process, delegation and permissions, controllers other than cpu,
// cpuset and cpuacct (so "no internal processes" shows only as far as cpu and cpuset, which are threaded controllers,
// are concerned). Counters stand still; tests set them by [Kernel.Pin].
//
// # Sources
//
// Linux kernel/sched/core.c (tg_set_cfs_bandwidth, tg_cfs_schedulable_down), kernel/cgroup/cpuset.c and cpuset-v1.c
// (validate_change, cpuset1_validate_change, cpuset_can_attach), kernel/cgroup/cgroup.c (cgroup_migrate_vet_dst,
// cgroup_vet_subtree_control_enable, cgroup_enable_threaded, cgroup_destroy_locked), lib/bitmap-str.c.
package cgroupmodel
