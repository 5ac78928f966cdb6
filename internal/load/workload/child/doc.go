// Package child starts this very program again as a child process that cannot
// outlive its parent.
//
// # Problem
//
// A load must end with the one who started it: after Ctrl-C, after kill -9, and
// though its own threads may be starved by the very quota that they are to show.
//
// # Rule
//
// A child is /proc/self/exe with a hidden command. Its configuration is one line
// of JSON on its standard input; single bytes follow, the parent's words to it.
// It ends at the first of three things:
//
//   - the pipe that its parent holds closes (its standard input). The kernel
//     closes it whatever the parent died of. PR_SET_PDEATHSIG would follow the
//     thread that forked, and Go's threads come and go (prctl(2));
//   - its deadline, looked at by its own timer;
//   - its deadline and [Grace]: a timer of the kernel sends SIGKILL
//     (timer_create(2)), with no help from any thread of it.
//
// Children are in process groups of their own: Ctrl-C at a terminal reaches the
// parent alone, which then ends them and cleans up.
//
// # Worked example
//
//	parent: Start(Options{Command: "__service", Config: spec})
//	child:  Enter(&spec) decodes spec, EndAfter arms both timers
//	parent: Tell('g')         the child's next Word is 'g'
//	parent: kill -9           the child's next Word says false: it exits
//
// # Limits
//
// A configuration has at most [MaxConfig] bytes, a child's last words
// [MaxWords], its life [MaxDeadline].
//
// Sources: timer_create(2), prctl(2), pipe(7).
package child
