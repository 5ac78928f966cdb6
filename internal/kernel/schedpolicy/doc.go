// Package schedpolicy reads and sets the scheduling policy of threads: sched_getattr(2), sched_setscheduler(2).
//
// A real-time thread runs before every ordinary one on its CPU. That is for a container with CPUs of its own: there it
// goes before the kernel's helpers and before what no cpuset keeps out. Everywhere else it starves its neighbours.
//
// Nice value and slice survive: sched_setscheduler leaves them, so that a thread that comes back to "other" is as it
// was. Threads are known by number and start time, which together are one thread's alone within one life of the machine.
//
// Children inherit the policy unless reset_on_fork is set, in which case they begin as "other".
//
// The kernel refuses a real-time policy (EPERM) in groups without real-time runtime (CONFIG_RT_GROUP_SCHED; every new
// cgroup has none), and to who lacks CAP_SYS_NICE; that is ErrRefused.
//
// Sources: kernel/sched/syscalls.c (user_check_sched_setscheduler, __sched_setscheduler, get_params), sched(7).
package schedpolicy
