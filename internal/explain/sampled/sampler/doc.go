// Package sampler reads the samples of package sampled from /proc and from cgroup files, without rights.
//
// # Problem
//
// What decides a cause happens within tens of milliseconds, and reading many threads so often costs more than a container with a
// small limit has to spare.
//
// # Rule
//
// Samples are taken five to ten times a period, at times drawn by chance, in episodes of a second. The sampler measures its own CPU
// time, and takes more of them where they are cheap. After an episode it waits until its share of the limit pays for the next one
// too (Options.Share). A look ends when enough periods were throttled or when it is clear that none is, not before Options.Least,
// and with Options.For at the latest.
//
// # Limits
//
//   - It follows the first MaxThreads threads of the first maxProcesses processes in the cgroup of the process and below it, and
//     says how many it left out. A thread that lives shorter than the time between two listings is not seen.
//   - The cgroup's files are those that this mount namespace has, else those of the process's own (through its root directory,
//     which needs the same user).
package sampler
