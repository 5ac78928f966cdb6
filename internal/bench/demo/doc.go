// Package demo shows throttling and its end on this very host, in cgroups of
// its own.
//
// # Problem
//
// A container with a quota of n CPUs and more than n busy threads spends its
// quota early in each period and is then stopped whole, with every thread that
// was only passing by. Average CPU use looks fine; a 10 ms sleep takes 150.
// Nobody believes that before they have seen it on their own kernel.
//
// # Rule
//
// One child process ([workload]) burns CPU with many threads while one of its
// threads sleeps 10 ms again and again and records how long it really took.
// Four variants, one after the other, each with a child of its own:
//
//	before   quota of n CPUs                      (the container as it is)
//	threads  same quota, only n threads burn      (what GOMAXPROCS=n does)
//	cpuset   same quota, on n CPUs                (narrow, limit kept)
//	after    the same n CPUs, quota off           (pin)
//
// n is 2, or 1 on hosts below 4 CPUs. Between variants only the settings of the
// demo's own cgroup change. Counters and sleeps are taken over the same window,
// which opens half a second after the burners have started. A sleep belongs to
// the window in which it began, and the last one is waited for: leaving out
// what is still held would flatter the variant that holds longest.
//
// With the quota off the kernel counts no periods, so "after" has no throttled
// periods: not counted, which is not 0. Its verdict rests on the sleeper, and
// on CPU used, which must be within 5 % of the quota variant's to be called equal.
//
// # Worked example
//
// 2 CPUs, 6.18, HZ 250, 32 burners, quota 100 ms per 100 ms. Both CPUs burn:
// after 50 ms the quota is spent and 17 threads on each CPU are stopped for
// 50 ms. A sleep that ends then waits for the next period, and in it for its
// turn among 16 burners at 4 ms each (a scheduler tick), which is more than
// the 50 ms that period has: it is stopped again. So the second mode lies at
// 140 to 200 ms, beyond one period (with 8 burners at 47 to 74 ms). On one CPU without a quota a waking
// thread that has used less than its share is next at the next tick: 14 ms.
//
// # What it touches
//
// It makes one cgroup per hierarchy below the scope, named
// unthrottle-demo-RUN.PID.START.NS, writes in it alone, and removes it.
// Whoever else runs on the host is neither moved nor limited; how much CPU they
// took meanwhile is measured and said. The name carries its owner's PID, start
// time and PID namespace: what a killed run left behind is removed by the next
// start, what a living one uses is not.
//
// # Limits
//
//   - The pinned CPUs are not exclusive here: making them so would move others.
//     On a busy host "after" can get less CPU than "before"; it is said.
//   - cgroup v2: the scope must hand cpu and cpuset to its children already
//     (cgroup.subtree_control). It is not ours to change.
//   - Not on one CPU: there a quota of one CPU never binds.
//
// Sources: seed 003 (32 burners, 10 ms sleep, two histograms); kernel.md 1.4
// (a quota equal to the CPUs still counts throttled periods, about 1 ms each)
// and 1.7 (what the counters mean).
package demo
