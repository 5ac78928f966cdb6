// Package demo shows throttling and its end on this very host, in a sandbox.
//
// # Problem
//
// A container with a quota of n CPUs and more than n busy threads spends its quota
// early in each period. The quota then stops all its threads, also those that only
// wanted to run for a moment. Average CPU use looks fine, but a 10 ms sleep takes 150.
// Few believe that before they have seen it on their own kernel.
//
// # Rule
//
// One child process ([workload]) burns CPU with many threads. One of its threads sleeps
// 10 ms again and again and records how long each sleep took. Four variants run one
// after the other, each with a child of its own:
//
//	before   quota of n CPUs                      (the container as it is)
//	threads  same quota, only n threads burn      (what GOMAXPROCS=n does)
//	cpuset   same quota, on n CPUs                (narrow, limit kept)
//	after    the same n CPUs, quota off           (pin)
//
// n is 2, or 1 on hosts below 4 CPUs. Between variants the demo changes only the
// settings of its own cgroup. Counters and sleeps cover the same window, which opens
// half a second after the burners have started. A sleep belongs to the window in which
// it began. The demo waits for the last one: without it the variant that stops threads
// longest would look better than it is.
//
// With the quota off the kernel counts no periods. The throttled periods of "after"
// are therefore not counted, which is not 0. Its verdict rests on the sleeper and on
// the CPU time used. It calls the latter equal within 5 % of the quota variant's.
//
// # Worked example
//
// 2 CPUs, 6.18, HZ 250, 32 burners, quota 100 ms per 100 ms. Both CPUs burn. After
// 50 ms the quota is spent and stops 17 threads on each CPU for 50 ms. A sleep that ends
// then waits for the next period. In that period it waits for its turn among 16 burners
// at 4 ms each (a scheduler tick). That takes more than the 50 ms of the period, so
// that the quota stops it again. The second mode therefore lies at 140 to 200 ms, beyond
// one period (with 8 burners at 47 to 74 ms). On one CPU without a quota a waking thread
// that has used less than its share runs at the next tick: 14 ms.
//
// # What it touches
//
// It makes a sandbox named unthrottle-demo-RUN.PID.START.NS below the scope, writes to
// it alone, and removes it. It neither moves nor limits other processes. It measures
// and reports how much CPU time they took.
//
// # Limits
//
//   - The pinned CPUs are not exclusive here: exclusive CPUs would move other
//     processes. On a busy host "after" can get less CPU time than "before". The
//     verdict then says so.
//   - cgroup v2: the scope must enable cpu and cpuset for its children
//     (cgroup.subtree_control). The demo does not change the scope.
//   - Not on one CPU: there a quota of one CPU never binds.
//
// Sources: seed 003 (32 burners, 10 ms sleep, two histograms); kernel.md 1.4 (a quota
// equal to the CPUs still counts throttled periods, about 1 ms each); kernel.md 1.7 (the
// meaning of the counters).
package demo
