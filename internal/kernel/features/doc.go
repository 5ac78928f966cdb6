// Package features finds out what the machine offers for unthrottle: how its
// cgroups are mounted, how its kernel hands out quota, which extras (burst,
// cpu.stat.local, BTF, sched_ext) it has, who else manages its CPUs, and what
// follows from that for every remedy.
//
// # The rule
//
// A feature is found by looking for the thing itself, never by comparing
// kernel versions: distributions carry fixes back and forth, so a version
// proves nothing (seed 001's bug was in some 3.10 kernels and absent from some
// 5.3 ones). Three kinds of evidence are used:
//
//   - a file that only a kernel with the feature creates (cpu.cfs_burst_us,
//     cpu.stat.local, /sys/kernel/sched_ext),
//   - the name of a structure member in the kernel's own type information
//     (BTF), for behaviour that shows in no file,
//   - the kernel's build configuration, for HZ.
//
// What none of these tells is reported as unknown.
//
// # Worked example
//
// A Debian 6.18 cloud kernel: cpu.stat.local exists, so throttled time is
// counted only while somebody waits (since 6.6) and stopped time has a lower
// bound; its BTF has cfs_rq.throttled_limbo_list, so threads are parked when
// they return to user mode and one long system call can run into debt (since
// 6.18). The same facts on a 4.19 with BTF switched off: slice expiry unknown.
//
// # Limits
//
// The package reads only; it does not run a workload. Whether slices expire
// (seed 001) on a kernel without BTF needs a measurement.
//
// Sources: kernel/sched/fair.c and kernel/sched/sched.h of Linux 5.10, 6.1,
// 6.12 and 7.2; Documentation/scheduler/sched-ext.rst.
package features
