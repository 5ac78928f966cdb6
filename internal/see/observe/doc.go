// Package observe samples the kernel's counters of all containers and makes one Observation per container and window.
// Every view, the agent and the fleet read that value.
//
// # The problem
//
// The kernel counts how often a cgroup's own quota throttled it (nr_periods, nr_throttled). It also counts for how
// long, as a sum over CPUs (throttled_time). Users suffer stopped time: the wall time during which a quota held back at
// least one runnable thread of the container. The quota may be its own or that of its pod or slice. The container's own
// cpu.stat does not show an ancestor's quota at all. Users also need to know which level's quota stopped the container.
//
// # The rule
//
// Stopped time is at least throttled time / CPUs (the kernel throttled all CPUs together). It is at most throttled time
// (one CPU after the other), and at most the window.
//
// Since Linux 6.6 cpu.stat.local counts the throttled time of the own and all inherited quotas, only on CPUs with a
// runnable thread of the cgroup. The package looks for the file and never for a kernel version. Without the file the
// lower bound is 0, and an ancestor's throttled time is the upper bound of what it did to each child. Without a quota
// at any level stopped time is exactly 0. Stopped lists all cases and says how levels share the blame.
//
// A worked example: a container on 4 CPUs has a pod with a quota of 20 ms per 100 ms. In one second its cpu.stat shows
// nr_throttled 0 and its cpu.stat.local gains 815 ms. The pod's cpu.stat gains 1,600 ms; a sibling caused the other 785
// ms. Stopped time is 815/4 = 204 ms to 815 ms. The pod throttled it for 0.815 s.
//
// Periods mislead where time does not. One thread on one CPU with a quota of one CPU is throttled in every tenth
// period, but for 1 ms in 3 s. That is no finding.
//
// # The cost
//
// A Sampler keeps the control files open. Per sample it reads each once with pread into one buffer:
//
//   - cpu.stat, cpu.stat.local and the limit of each container,
//   - the limits of the ancestors, and cpu.stat of those with a quota,
//   - the cpuset of each container, and on v1 cpuacct.usage.
//
// It parses limits and cpusets only when their text changed. In a Watcher it reads less. inotify tells which limits were
// written. Where a probe counts, it tells which containers ran, and the others' own files are as they were: see rests. In
// every tenth round each container is read in any case, for writes that make no event here. With LeaveVacant it reads
// nothing of containers without a process but their cgroup.procs, once in vacantTurn rounds. A Watcher reads cpu.stat,
// and only that, ten times a
// second for cgroups that were stopped within the last ten seconds. Observation.Cells shows these tenths. Once all
// handles are open, only the observations allocate memory. Above 80 % of the limit on open files the Sampler opens and
// closes a handle for each read. It closes handles of removed cgroups (ENODEV) immediately. docs/reference/bench.md has
// the figures.
//
// # Limits
//
//   - The kernel adds to the counters when a throttling ends. One that spans two windows counts whole in the second.
//     One that has not ended shows in the upper bound only, and only if the container's own quota or one inside caused
//     it (see Stopped).
//   - Quotas inside a container are found by a look at all cgroups in it, up to cgroup.MaxBelow: in both samples of Once,
//     in a Watcher after a write, and with each list of the containers. One that a program in the container sets through
//     a mount of its own shows there up to RescanInterval late. A container that rests is not looked into.
//   - The Sampler reads the files of one cgroup one after the other, some microseconds apart.
//   - The number of CPUs is the size of the cpuset, the larger one of both ends of the window. If threads confine
//     themselves further by their affinity, the lower bound is lower than it could be, but never wrong.
//   - On separate v1 hierarchies a container may have no cpuacct cgroup of its own. Then the Sampler sums the CPU time
//     of its threads (schedstat) and misses threads that ended meanwhile. In a PID namespace other than the host's, v1
//     hides threads, and CPU time is not measured.
//   - In a cgroup namespace, or with only a part of the tree mounted, ancestors above are invisible. With
//     cpu.stat.local their part is ByUnknown. Without it a container that has no visible quota is not measured.
//   - Without cpu.stat.local a quota that is set and removed within one window leaves no trace.
//   - In a Watcher a limit that is written through another mount of the cgroup file system shows up to turnRounds late.
//     So do the CPUs of a container that rests.
//
// Sources: kernel/sched/fair.c and core.c (throttle_cfs_rq, tg_unthrottle_up, cpu_cfs_local_stat_show; 6.6 added
// cpu.stat.local in 677ea015f231), kernel/cgroup/cpuset.c, fs/kernfs (inode numbers), inotify(7).
package observe
