// Package forecast predicts from a recording of a container what each remedy would do to it. The result is a
// table of throttled periods, stopped time and latencies, with the price and the error of each figure.
//
// # Problem
//
// Counters show that a quota stops a container. Whether exclusive CPUs, a burst or a larger limit would help,
// and how much, depends on which thread woke which one when. No counter has that. To try a remedy on a
// service that earns money is the expensive way to know.
//
// # Rule
//
// The package turns a recording into the demand of the container's threads: chains of runs and sleeps. A run
// is as long as the CPU time that it took, without waiting or throttling. Each sleep knows what ended it.
// Package simulate lets the threads do that again on a host with the recorded CPUs, ticks and kernel, under
// another quota or on other CPUs.
//
// A replay keeps causes, not times:
//
//	the wake-up came from                 in the replay the thread
//	a thread of the container             waits until that thread has used as much CPU time as it had then
//	its own timer, of a common duration   sleeps as long again, from when it goes to sleep
//	its own timer, later after more work  sleeps as long again, from when it goes to sleep
//	outside otherwise                     wakes when it woke, or goes on at once if it is late
//
// If other threads wake the threads of a pool in the order in which they fell asleep, the pool has a work
// queue. Any of its threads then takes the next work, whichever thread did it in the recording.
//
// An event loop, as Node's main thread or a worker of nginx, takes what comes first, whatever the order was in the
// recording: see eventLoop.
//
// The replay keeps a wake-up that comes before its sleep, as a semaphore or a full queue would. A run that
// the end of the recording cut off is endless, if the thread had not slept before or never ran as long. The
// replay has the rest of the host too: it gives each other owner of CPU time a cgroup, and the CPU time that
// it used at the recorded times.
//
// # Self-check
//
// The row "none" replays the recording unchanged, so its figures must be the recorded ones. The difference is
// the least error of every other row.
//
// # Worked example
//
// A limit of 0.5 CPUs, 50 ms in 100 ms. Every 250 ms 8 threads wake together, each for 8 ms: 64 ms of work, 8
// wide. They spend the quota in 6.25 ms. The other 14 ms wait for the next refill, which comes 2 to 100 ms
// after the wake-up, so the responses' p99 is up to 100 ms. Pinned to one CPU the same chains take 64 ms one
// after the other, at any phase, and nothing is throttled.
//
// # Limits
//
// A run takes the CPU time that it took. A replay does not know that work costs more the wider it runs, or
// the more siblings are busy. Neighbours have the default weight and no quota, because a recording has
// neither. The replay ignores priorities (nice, real-time). If an interrupt that wakes a thread meets a
// thread of the container, the recording names that thread as the waker. Rows of resized pools and of more or
// fewer shards are no replays: they keep when work came and how much it was, and let other threads take it.
//
// # Sources
//
// make accuracy-forecast compares forecasts with real runs under the remedies. Package recording says what a
// recording has, package scenario what the remedies are.
package forecast
