// Package experiments holds tests that need a machine with many CPUs: what a quota does to more threads than CPUs, and
// whether the lab's guest is the requested machine. It exports nothing.
//
// The quota experiment is the one of the appendix "testing quotas and cpusets" (seed 003): a limit of 2 CPUs, 32
// burners. Over 16 CPUs the burners use up the quota in an eighth of each period, and nearly every period throttles.
// The same quota fits a cpuset of 2 CPUs, and most periods do not throttle.
//
// TestSlices is fibtest's load (seed 001), for kernels that are built for it: make lab-kernel-affected.
//
// Limits: a vCPU is charged also for time that the host takes away. So in the lab a third of the periods throttle with
// the cpuset (in the seed 13 of 160). The test requires less than half the share without it.
package experiments
