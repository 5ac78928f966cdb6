// Package roles tells apart threads of one name that play different parts: a server and the process that it
// forked to save, an event loop and its workers, a session that looks up and one that reports.
//
// # Problem
//
// A pool is named by the name that its threads gave themselves. Much software gives all of them one name.
// Redis and the child that saves are both `redis-server`, all processes of PostgreSQL are `postgres`, Node's
// event loop and libuv's workers are `node`. Taken for one pool, the one that waits hides behind the one that
// spends the quota.
//
// # Rule
//
// The input is one recording. Threads of one name in processes of one name are a group. A group falls apart by
//
//   - the title of the process, where the software tells ([title]): `postgres: parallel worker`;
//   - the process: one that began during the recording is a child if its runs are longer than those of the
//     processes before it;
//   - the thread: a process's main thread and the others, if both work, and either their runs differ by roleGap
//     or by kindGap and something else wakes them;
//   - the runs: a gap of roleGap between the mean runs of two threads, with enough work on both sides.
//
// A run is the CPU time from a wake-up to the next sleep. Threads that take their work from one queue have runs
// of one length on the mean, because each of them does any work: they stay together. So do all threads of a Go
// program, since any of them runs any goroutine.
//
// The role that outside wake-ups (clients, devices) reach most keeps the name. The others get it with their role
// behind it: `redis-server (child)`, `node (workers)`, `postgres (long runs)`; a role told by a title has the
// title's words.
//
// Where events are not known, counters tell each thread's CPU time and how often it slept ([Of]). Who woke it is not known then.
//
// # Worked example
//
// redis-server with 2,983 runs of 0.15 ms, woken by clients, and six processes that it forked during the
// recording, with runs of 20 to 50 ms: `redis-server` and `redis-server (child)`.
//
// # Limits
//
//   - A wake-up in a device's interrupt names the interrupted thread as the waker, so remote clients may look
//     like threads of the container. The thread that is interrupted is most often idle.
//   - Two parts with runs of similar length and the same kind of wakers stay one pool.
package roles
