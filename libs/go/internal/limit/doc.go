// Package limit reads the CPU limit of this process from the files of its cgroups, v1 and v2.
//
// # Rule
//
// /proc/self/cgroup names the cgroup, /proc/self/mountinfo where its files are. The limit is the least quota / period from
// this cgroup up to the highest one in sight. Counters and use are of the level that has this limit. Where a container sees
// only its own cgroup, that is the whole path.
//
// # Limits
//
// It imports only the standard library, so it shares no code with the main module's cgroup package, which also writes.
// Cpusets are not read here: the Go runtime counts the CPUs that it may run on.
//
// Sources: cgroups(7), proc_pid_mountinfo(5), kernel/sched/core.c (cpu_cfs_stat_show, cpu_max_show), read at 6.18.
package limit
