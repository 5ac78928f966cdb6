// Package features finds out what the machine offers for unthrottle. It reads how cgroups are mounted, how the kernel
// distributes quota, and which extras it has (burst, cpu.stat.local, BTF, sched_ext). It also finds other managers of
// the CPUs, and derives the consequences for every remedy.
//
// # The rule
//
// The package looks for the feature itself and never compares kernel versions. Distributions backport fixes, so a
// version proves nothing: seed 001's bug was in some 3.10 kernels and absent from some 5.3 ones. It uses three kinds of
// evidence:
//
//   - a file that only a kernel with the feature creates (cpu.cfs_burst_us, cpu.stat.local, /sys/kernel/sched_ext),
//   - the name of a structure member in the kernel's own type information (BTF), for behaviour that shows in no file,
//   - the kernel's build configuration, for HZ.
//
// A feature without such evidence is reported as unknown.
//
// # Worked example
//
// A Debian 6.18 cloud kernel has cpu.stat.local. So throttled time counts only while a thread waits (since 6.6), and
// stopped time has a lower bound. Its BTF has cfs_rq.throttled_limbo_list. So threads are parked when they return to
// user mode, and one long system call can run into debt (since 6.18). On a 4.19 with BTF switched off, slice expiry is
// unknown.
//
// # Limits
//
// The package reads only; it runs no workload. Whether slices expire (seed 001) on a kernel without BTF needs a
// measurement.
//
// Sources: kernel/sched/fair.c and kernel/sched/sched.h of Linux 5.10, 6.1, 6.12 and 7.2;
// Documentation/scheduler/sched-ext.rst.
package features
