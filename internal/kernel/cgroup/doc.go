// Package cgroup is the cpu and cpuset controllers of Linux control groups, v1, v2 and mixed, as one typed thing.
//
// # Problem
//
// A container's CPU settings lie in files whose names, units and rules differ between the two versions of the
// interface; on v1 one container may even have a different path per controller. A wrong order of writes is refused,
// a write of nothing is silently ignored, and an errno alone does not tell the user what to do. This room knows the
// files, their units and the kernel's rules once, so that no other room writes "cfs_quota".
//
// # Rule
//
// A cgroup is named by its kernel path in the cpu hierarchy, raw bytes in a Go string. [Open] finds the hierarchies
// from mountinfo, [Host.Group] the counterparts in the others. All touches of settings go through [FS], which has two
// implementations: [Host] and, for tests, cgroupmodel.Kernel with the kernel's rules in memory. A limit is
// quota / period; the effective limit of a container is the least along its path ([Levels], [Effective]).
//
// # Example
//
// A pod with cpu.max "20000 100000" holds a container with "max 100000". [Levels] of the container gives
//
//	/pod/c    none
//	/pod      20 ms / 100 ms   0.2 CPUs
//	/         none
//
// and [Effective] 0.2 CPUs at /pod. Run dry, the container's own cpu.stat stays at nr_throttled 0, for the kernel
// counts only at the level whose quota ran out; its cpu.stat.local shows the time ([Stat].ThrottledTotal).
//
// On v1, quota and period are two files, and the ratio between the two writes counts too. From 50 ms / 100 ms (0.5)
// to 20 ms / 50 ms (0.4), quota first would give 0.2, perhaps below a child, and period first 1.0, perhaps above the
// parent. So [LimitWrites] lifts the quota in between: cpu.cfs_quota_us -1, cpu.cfs_period_us 50000,
// cpu.cfs_quota_us 20000.
//
// # Limits
//
// What lies above the mounted cgroup (a container that sees only its own tree) binds but cannot be seen. In a cgroup
// namespace whose mount shows more than the namespace (roots "/..") paths are relative to the mount, and
// /proc/PID/cgroup cannot be matched to them. Real-time and deadline bandwidth are not read. Files above
// [MaxFileBytes], walks above [MaxGroups] end with [ErrTooMuch].
//
// # Sources
//
// Linux Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst, scheduler/sched-bwc.rst,
// filesystems/proc.rst; kernel/sched/core.c (tg_set_cfs_bandwidth, tg_cfs_schedulable_down), kernel/cgroup/cpuset.c
// and cpuset-v1.c (validate_change), read at 6.12 and 6.18.
package cgroup
