// Package fix takes one container through the whole journey: look, propose,
// show the plan, ask, apply, look again, judge, and keep or undo.
//
// # The rule
//
// A change stays only if it helped, or if somebody who saw that its effect is
// unverified wants it. Whether it helped is decided by the user's own latencies
// where a source is given; counters alone cannot decide it, since they show
// stops and not tails (rule "never worse" of the house). Undone is what made
// latencies worse, what changed nothing about them, what harmed a neighbour, and
// what left the container stopped as long as before.
//
// # Worked example
//
// A container with a limit of 0.5 CPU runs 32 threads that burn. It is stopped
// for 750 ms to 1 s of each second. pin is proposed: CPU 1, quota off, two other
// containers moved to CPU 0. After the answer "y" four settings are written, a
// second window shows 0 ms stopped, and the verdict reads "unverified", because
// no latencies were given: kept, since the user said so. With --slo 'p99<20ms'
// and p99 going from 97 ms to 12 ms it reads "better" and is kept without a
// further question; from 12 ms to 12 ms it reads "no change" and is undone.
//
// # Limits
//
// Two windows are compared, not two controlled runs: load that changes between
// them shows as an effect. The window's length and the number of samples are in
// the result.
package fix
