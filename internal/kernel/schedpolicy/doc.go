// Package schedpolicy reads and sets the scheduling policy of threads: sched_getattr(2), sched_setscheduler(2).
//
// A real-time thread runs before every ordinary one on its CPU. That suits a container with exclusive CPUs: there it
// runs before the kernel's helpers and other tasks that no cpuset excludes. Everywhere else it starves its neighbours.
//
// Nice value and slice survive: sched_setscheduler does not change them, so a thread that returns to "other" is as
// before. Number and start time together identify one thread until the machine reboots.
//
// Children inherit the policy unless reset_on_fork is set; then they begin as "other".
//
// The kernel refuses a real-time policy (EPERM) in groups without real-time runtime (CONFIG_RT_GROUP_SCHED; every new
// cgroup has none). It also refuses callers without CAP_SYS_NICE. Both are ErrRefused.
//
// Sources: kernel/sched/syscalls.c (user_check_sched_setscheduler, __sched_setscheduler, get_params), sched(7).
package schedpolicy
