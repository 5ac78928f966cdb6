// Package counters makes a fleet's rows of what a Prometheus keeps of containers that have no agent: cAdvisor's
// counters.
//
// # Problem
//
// Whoever wants to know how many cores come back has had the kubelets' counters for months, and has no rows yet.
//
// # Rule
//
// [Import] asks for an hour at a time, in five minutes each as rows are: CPU time, periods, throttled periods and time,
// limits, requests, memory, and the nodes' CPUs and memory. [Slot] makes rows of the answers. What counters do not tell
// stays null: wanted, width, and what another limit would have done. So a report tells who is stopped, and what all
// have, and of no container what it needs.
//
// What is there twice counts once, see twins: the largest of what one cgroup has, the sum of cgroups that had the same
// names one after the other. What cannot be told apart is refused. A row that cannot be true is left out.
//
// Stopped time has bounds. cAdvisor's throttled seconds add up the CPUs of the node, so that their sum over these is
// the least; the most is their sum, one period for each throttled one, or the five minutes.
//
// # Worked example
//
// 120 of 3,000 periods of 100 ms were throttled, for 20 s on 4 CPUs in all: stopped for 5 to 12 s.
//
// # Limits
//
// Prometheus' increase extrapolates to the ends of the five minutes: figures are off by some percent, more where it
// scrapes seldom.
package counters
