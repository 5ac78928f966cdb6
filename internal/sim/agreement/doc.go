// Package agreement tells whether the simulator agrees with a real kernel. It draws scenarios and compares the outcome
// of a real kernel with that of the simulator.
//
// # Problem
//
// A simulator that was tuned on three examples is true for three examples. A kernel does
// not agree with itself either: ticks, period phases and the CPU of a wake-up are left
// to chance, and a quota amplifies small differences. A miss is meaningful only beside
// the spread of the real runs.
//
// # Rule
//
// A number draws a scenario ([New]). It has cgroups one or two deep with limits, periods
// and bursts, some on one CPU. In each cgroup threads burn, run and sleep, or burn by
// turns, beside a sleeper that measures. The scenario runs for real several times, and in
// the simulator with several seeds. A figure agrees where the simulated median is within
// a bound of the real median, or within the range of the real runs:
//
//	throttled periods   3 points
//	CPU use             2 %
//	throttled time      10 %
//	p50, p95            15 %, or one tick where that is more
//
// A draw has the figure where all of its cgroups or workloads agree on it. [Judgement]
// also has how often real runs agree with the others of the same draw, each in the
// simulator's place.
//
// # Worked example
//
// A cgroup uses 0.498, 0.500, 0.501, 0.500 and 0.499 CPUs; simulated are 0.505. That is
// outside the range, but within 2 % of 0.500: it agrees. Sleeps have a p95 of 80, 84, 81,
// 90 and 88 ms, and 70 simulated. 15 % of 84 are 12.6 ms, and 70 is 14 below: a miss.
//
// # Limits
//
// A real run is repeated if the hypervisor or other processes had more of the CPUs than
// [MostSteal] and [MostOthers]. Draws are of two CPUs at most, whatever the host has: see
// [Machine]. There are no services, collectors and remedies in draws. Only tests import
// this package and agreement/measure, which makes the real runs, and the studies below bench.
package agreement
