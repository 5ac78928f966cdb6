// Package procfs reads files of /proc, a file of ours per file of the kernel's:
// what CPUs have done since boot (/proc/stat), and fields of a task's stat and
// status. Text comes in, values go out; the root of /proc is a parameter.
//
// Sources: proc_stat(5), proc_pid_stat(5), proc_pid_status(5); show_stat in
// fs/proc/stat.c and do_task_stat in fs/proc/array.c.
package procfs
