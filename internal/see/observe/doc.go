// Package observe samples the kernel's counters of all containers and makes one Observation per container and window:
// the value that every view, the agent and the fleet read.
//
// # The problem
//
// The kernel says how often (nr_periods, nr_throttled) and, summed over CPUs, how long (throttled_time) a cgroup was
// throttled by its own quota. Users suffer stopped time: the wall time during which at least one of the container's
// runnable threads was held back, by its own quota or by that of its pod or slice, in whose throttling the
// container's own cpu.stat shows nothing but zeros. And they need to know whose quota it was.
//
// # The rule
//
// Stopped time lies between throttled time / CPUs (all CPUs stopped together) and throttled time (one at a time), and
// within the window. Since Linux 6.6 cpu.stat.local counts throttled time of the own and all inherited quotas, only on
// CPUs where something wanted to run; the feature is known by the file, never by a version. Without it the lower
// bound is 0, and an ancestor's throttled time bounds from above what it did to each of its children. Where no level
// has a quota, stopped time is exactly 0. See Stopped for all cases, and for how blame is shared among levels.
//
// A worked example: a container on 4 CPUs whose pod has 20 ms per 100 ms. In one second its cpu.stat shows
// nr_throttled 0; cpu.stat.local gained 815 ms; the pod's cpu.stat gained 1,600 ms, the rest of which is a sibling's.
// Stopped time: 815/4 = 204 ms to 815 ms. Throttled by: the pod, 0.815 s.
//
// Counting time and not periods makes a difference: one thread on one CPU with a quota of one CPU is throttled in
// every tenth period, for 1 ms in 3 s. That is no finding.
//
// # The cost
//
// A Sampler keeps the control files open and reads each once per sample with pread into one buffer: cpu.stat,
// cpu.stat.local and the limit of each container, limits (and, where there is a quota, cpu.stat) of the ancestors,
// its cpuset, and on v1 cpuacct.usage. Limits and cpusets are parsed only when their text changed. cgroups that were
// stopped within the last ten seconds have cpu.stat, and only that, read ten times a second by a Watcher; the tenths
// show as Observation.Cells. A steady state makes no garbage but the observations themselves. Above 80 % of the limit
// on open files handles are opened and closed for each read; handles of removed cgroups (ENODEV) are closed at once.
// docs/reference/bench.md has the figures.
//
// # Limits
//
//   - The kernel adds to the counters when a throttling ends. One that spans two windows counts whole in the second. One
//     that goes on shows in the upper bound only, and only where it is its own quota's (see Stopped).
//   - The files of one cgroup are read one after the other, some microseconds apart.
//   - The number of CPUs is that of the cpuset (the larger of both ends of the window): threads confined further by
//     their own affinity make the lower bound lower than it could be, never wrong.
//   - On separate v1 hierarchies a container may have no cpuacct cgroup of its own. Its CPU time is then counted up from
//     its threads (schedstat), which misses those that ended meanwhile. In another PID namespace than the
//     host's v1 hides threads, and CPU time is not measured there.
//   - In a cgroup namespace, or with only a part of the tree mounted, ancestors above are invisible. Where the kernel
//     has cpu.stat.local their part is ByUnknown; where it has not, a container without a visible quota is not measured.
//   - A quota set and removed again within one window goes unseen, if the kernel has no cpu.stat.local.
//
// Sources: kernel/sched/fair.c and core.c (throttle_cfs_rq, tg_unthrottle_up, cpu_cfs_local_stat_show; 6.6 added
// cpu.stat.local in 677ea015f231), kernel/cgroup/cpuset.c, fs/kernfs (inode numbers), inotify(7).
package observe
