// Package child starts this very program again as a child process that cannot
// outlive its parent.
//
// # Problem
//
// A load must end with the program that started it: after Ctrl-C and after kill -9.
// It must end even when a quota starves its own threads.
//
// # Rule
//
// A child is /proc/self/exe with a hidden command. Its standard input has one line of
// JSON, its configuration, and then single bytes, the parent's words. It ends at the
// first of three things:
//
//   - The pipe that its parent holds closes (its standard input). The kernel closes it
//     however the parent ended. PR_SET_PDEATHSIG would follow the thread that forked,
//     and Go's threads come and go (prctl(2)).
//   - Its deadline, by a timer of its own.
//   - Its deadline and [Grace]: a timer of the kernel sends SIGKILL
//     (timer_create(2)). It needs no thread of the child.
//
// Children are in process groups of their own. Ctrl-C at a terminal reaches the
// parent alone, which then ends them and cleans up.
//
// # Worked example
//
//	parent: Start(Options{Command: "__service", Config: spec})
//	child:  Enter(&spec) decodes spec, EndAfter starts both timers
//	parent: Tell('g')         the child's next Word is 'g'
//	parent: kill -9           the child's next Word returns false: it exits
//
// # Limits
//
// A configuration has at most [MaxConfig] bytes, a child's last words
// [MaxWords], its life [MaxDeadline].
//
// Sources: timer_create(2), prctl(2), pipe(7).
package child
