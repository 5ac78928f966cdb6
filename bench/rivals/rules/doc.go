// Package rules has what other projects do with a container's CPU settings, each as a function of values.
//
// # Problem
//
// Someone who reads that a remedy makes a service faster asks: than what else that I could install? A fair answer runs the
// others' rules on the same service under the same load. Most of them come with a cluster, a metrics server and an operator, of
// which a latency says little. What decides is the rule: what it looks at, how often, and what it sets.
//
// # Rule
//
// A [Rule] is asked at its own cadence. It is told what was observed ([Observed]) and returns what to set ([Setting]), and the
// rule to ask next, since some remember. It reads no clock and draws no chance: times and random numbers are its caller's.
//
//	rule           cadence   looks at                        sets
//	[Koordinator]  1 s       throttling, use, the node       burst once; quota up by 1.2 and down by 0.8
//	[Captain]      100 ms    throttling, use                 quota, each second
//	[VPA]          1 min     a day or more of use            request and limit
//	[KRR]          once      days of use                     request; no limit
//	[Attune]       5 min     days of use; throttling after   request, each hour
//	[Kubelet]      once      the spec                        exclusive CPUs; quota or none
//	[Fixed]        once      the spec                        what a person could set: no limit, twice the limit, bursts, periods
//
// Each names its source with the version. Its tests have the cases of the project's own tests, or, for Captain, which has none,
// what the authors' program returned.
//
// # Worked example
//
// A container has a request of 1 CPU and a limit of 2. In the last second it used 1.8 CPUs and was throttled in 3 of 10 periods,
// on a node whose shared CPUs are a quarter used. On the day before it used 0.4 CPUs, and 1.6 from 14 to 15 o'clock.
//
//	Koordinator   burst 2 s, which the kernel refuses; quota 200 to 240 ms
//	Captain       at a target of 5 %: 2 CPUs x (1 + 0.3 - 3 x 0.05), a quota of 230 ms
//	VPA           the hour is less than a tenth of the day: 0.414, the end of its bucket, and 15 %: a request of 0.476 CPUs and, as
//	              before, twice as much as the limit
//	KRR           the hour is less than a twentieth: a request of 0.4 CPUs, no limit
//	Attune        the hour counts by itself: far above 1.5 CPUs, which is as high as it goes at a time; the limit stays
//	Kubelet       request and limit differ: a quota of 200 ms and the CPUs of all
//
// # Limits
//
// One container in its pod. Koordinator and the kubelet set the pod's quota too: it has to have room.
//
// Settings are what a project asks for. In which order it writes them, and that each write stands alone, is said at the rule where it
// matters. VPA and Attune resize in place or by a new pod; here a resize takes no time.
//
// Left out: memory in all of them, which in VPA also counts where it decides whether to resize; Tower, by which Autothrottle
// learns Captain's target; VPA's bounds by policy, and its checkpoints; KRR's several pods; Attune's canaries, objectives,
// start-up boosts and the longer wait after several resizes that were taken back; the kubelet's choice of CPUs.
package rules
