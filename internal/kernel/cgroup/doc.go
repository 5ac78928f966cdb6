// Package cgroup offers the cpu, cpuset and cpuacct controllers of Linux control groups, v1, v2 and mixed, with Go
// types.
//
// # Problem
//
// A container's CPU settings lie in files whose names, units and rules differ between the two versions of the
// interface. On v1 one container may even have a different path per controller. The kernel refuses a wrong order of
// writes and silently ignores a write of nothing. An errno alone does not tell the user what to do. Only this package
// knows the files, their units and the kernel's rules, so that no other one writes "cfs_quota".
//
// # Rule
//
// A cgroup's name is its kernel path in the cpu hierarchy, raw bytes in a Go string. [Open] finds the hierarchies from
// mountinfo, [Host.Group] the counterparts in the others. All reads and writes of settings go through [FS]. It has two
// implementations: [Host], and for tests cgroupmodel.Kernel with the kernel's rules in memory. A limit is quota /
// period. The effective limit of a container is the least along its path ([Levels], [Effective]).
//
// # Example
//
// A pod with cpu.max "20000 100000" holds a container with "max 100000". [Levels] of the container returns
//
//	/pod/c    none
//	/pod      20 ms / 100 ms   0.2 CPUs
//	/         none
//
// and [Effective] returns 0.2 CPUs at /pod. When the quota is used up, the container's own cpu.stat stays at
// nr_throttled 0: the kernel counts only at the level whose quota ran out. Its cpu.stat.local shows the time
// ([Stat].ThrottledTotal).
//
// On v1, quota and period are two files, and the ratio between the two writes counts too. Take a change from 50 ms /
// 100 ms (0.5) to 20 ms / 50 ms (0.4). Quota first would give 0.2, perhaps below a child; period first would give 1.0,
// perhaps above the parent. So [LimitWrites] lifts the quota in between: cpu.cfs_quota_us -1, cpu.cfs_period_us 50000,
// cpu.cfs_quota_us 20000.
//
// # Limits
//
//   - In a container that sees only its own tree, cgroups above the mounted one also limit it, but are invisible.
//   - In a cgroup namespace whose mount shows more than the namespace (roots "/.."), paths are relative to the mount.
//     They do not match those in /proc/PID/cgroup.
//   - The package does not read real-time and deadline bandwidth.
//   - Files above maxFileBytes and walks above maxGroups end with [ErrTooMuch].
//
// # Sources
//
// Linux Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst, scheduler/sched-bwc.rst, filesystems/proc.rst;
// kernel/sched/core.c (tg_set_cfs_bandwidth, tg_cfs_schedulable_down), kernel/cgroup/cpuset.c and cpuset-v1.c
// (validate_change), read at 6.12 and 6.18.
package cgroup
