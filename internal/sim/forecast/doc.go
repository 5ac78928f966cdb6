// Package forecast says what each remedy would do to a container, from a
// recording of it: a table of throttled periods, stopped time and latencies, with
// the price and the error of each figure.
//
// # Problem
//
// That a container stands still is seen; whether exclusive CPUs, a burst or a
// larger limit would help it, and by how much, depends on who woke whom when, and
// no counter has that. Trying it out on a service that earns money is the dear
// way to know.
//
// # Rule
//
// A recording is turned into what the container's threads wanted: chains of runs,
// each as long as the CPU time that it took, without what it waited or was held
// back; and of sleeps, each with what ended it. package simulate lets the threads
// do that again on a host with the recorded one's CPUs, ticks and kernel, under
// another setting of the quota or other CPUs.
//
// A replay keeps causes, not times:
//
//	woken by a thread of the container    waits for that one to be as far, in CPU time, as it was then
//	woken by its own timer, most times    sleeps as long again, from when it goes to sleep
//	after the same time, or the later
//	the longer it worked before
//	woken from outside otherwise          wakes when it woke, or goes on at once if it is late
//
// A pool whose threads others wake in the order in which they fell asleep is a crew:
// any of its threads does what comes next, whose ever it was.
//
// A wake-up that comes before the sleep that it ended is kept for it, as a
// semaphore or a full queue would. A run that the end of the recording cut off
// goes on for ever, if the thread had not slept before or never ran as long.
// Everybody else on the host is replayed too: what a CPU's other holders used,
// when they came, each owner in a cgroup of its own.
//
// # Self-check
//
// The row "none" replays what was recorded, so it must come out as recorded.
// How far it does not is the least error of every other row.
//
// # Worked example
//
// A limit of 0.5 CPUs, 50 ms in 100 ms; 8 threads are woken together every 250
// ms, each for 8 ms: 64 ms of work, 8 wide. They spend the quota in 6.25 ms; the
// 14 ms that are left come with the next refill, between 2 and 100 ms after the
// wake-up: the responses' p99 is up to 100 ms. Pinned to one CPU the same chains
// take 64 ms one after the other, whatever the phase, and nothing is throttled.
//
// # Limits
//
// A run takes the CPU time that it took: that work costs more the wider it runs,
// or the more siblings are busy, is not known to a replay. Neighbours have the
// usual weight and no quota, for a recording has neither. Priorities (nice,
// real-time) are not replayed. A wake-up by an interrupt that met a thread of the
// container is told as by that thread. Rows of resized pools and of more or fewer
// shards are no replays: they keep when work came and how much it was, and let
// other threads take it.
//
// # Sources
//
// make accuracy-forecast holds forecasts against what comes when the remedies are applied for
// real. What is recorded: package recording. The remedies: package scenario.
package forecast
