// Package fix takes one container through the whole journey: observe, propose, show the plan, ask, apply, observe again,
// judge, and keep or undo.
//
// # The rule
//
// A change stays only if it helped, or if a user keeps it who saw that its effect is unverified. The user's own latencies
// decide whether it helped, where a source is given. Counters alone cannot decide, because they show stops and not tails
// (rule "never worse" of the house). A change is undone that made latencies worse, that did not change them, that harmed a
// neighbour, or that left the container stopped as long as before.
//
// # Worked example
//
// A container with a limit of 0.5 CPU runs 32 busy threads. It is stopped for 750 ms to 1 s of each second. The proposal is
// pin: CPU 1, quota off, two other containers moved to CPU 0. After the answer "y" four settings are written, and a second
// window shows 0 ms stopped. The verdict is "unverified", because no latencies were given, and the change stays, because
// the user said so. With --slo 'p99<20ms' and p99 going from 97 ms to 12 ms the verdict is "better", and the change stays
// without a further question. From 12 ms to 12 ms it is "no change", and the change is undone.
//
// # Limits
//
// Two windows are compared, not two controlled runs: load that changes between them shows as an effect. The length of the
// window and the number of samples are in the result.
package fix
