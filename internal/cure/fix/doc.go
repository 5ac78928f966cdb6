// Package fix takes one container through the whole journey: record, forecast, choose, show the plan, ask, apply, measure
// again, judge, and keep or undo; then the next best.
//
// # The rule
//
// policy.Choose chooses from the forecast of a recording. A change stays only if it helped, or if a user keeps it who saw
// that its effect is unverified. The user's own latencies decide whether it helped, where a source is given, else the
// recorded responses of the thread pool that suffers. Counters alone cannot decide, because they show stops and not
// tails. A change is undone that made latencies worse, that did not change them, that
// harmed a neighbour, or that left the container stopped as long as before. Then the next best row of the forecast is tried.
//
// From the write to the verdict the change is on trial in the journal: if the process ends first, the next writer undoes
// the change. The latency source is asked for the time after the change only, after as long as it looks back; an answer
// that is not of that time leaves the effect unverified.
//
// # Worked example
//
// A pool of 8 threads wakes four times a second for 80 ms of work, under a limit of 0.6 CPUs. It is stopped for 180 ms of
// each second, and its p99 is 90 ms. The forecast says 45 ms with a burst of one quota, 80 ms pinned to a CPU, 45 ms with a
// larger limit. Burst is proposed: it grants no more CPU. After the answer "y" one setting is written, and a second
// recording shows a p99 of 46 ms. The verdict is "better", and the change stays without a further question.
//
// # Limits
//
// Two windows are compared, not two controlled runs: load that changes between them shows as an effect. Where the work
// differs by more than a fifth, runs are judged as multiples of their own CPU time. The length of the window and the number
// of samples are in the result.
package fix
