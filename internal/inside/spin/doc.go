// Package spin runs the threads whose gaps package inside reads: for a second on all CPUs, then seldom. It needs no rights, no
// file of the host and no file of a cgroup; where /proc shows the processes of the own cgroup, it reads their CPU time.
//
// # Limits
//
// After the trial the threads and what starts them use at most [Share] of the limit. The threads stay on their CPUs by
// sched_setaffinity(2); a container that forbids it cannot be looked at.
package spin
