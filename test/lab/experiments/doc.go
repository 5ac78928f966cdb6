// Package experiments holds tests that only a machine with many CPUs can run:
// what a quota does to more threads than CPUs, and whether the lab's guest is
// the machine that was asked for. There is nothing to import.
//
// The quota experiment is the one of the appendix "testing quotas and cpusets"
// (seed 003): a limit of 2 CPUs, 32 burners. Over 16 CPUs the quota is used up
// in an eighth of each period and nearly every period throttles; the same quota
// on a cpuset of 2 CPUs fits, and most do not.
//
// TestSlices is fibtest's load (seed 001), for kernels that are built for it:
// make lab-kernel-affected.
//
// Limits: a vCPU that the host takes away is charged the time all the same, so
// that with the cpuset a third of the periods still throttle in the lab (in the
// seed 13 of 160). The test asks for less than half the share without it.
package experiments
