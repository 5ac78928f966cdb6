// Package procfs parses files of /proc, one file of ours per file of the kernel's: the CPUs' times since boot
// (/proc/stat), and fields of a task's stat and status. It takes text and returns values; the root of /proc is a
// parameter.
//
// Sources: proc_stat(5), proc_pid_stat(5), proc_pid_status(5); show_stat in fs/proc/stat.c and do_task_stat in
// fs/proc/array.c.
package procfs
