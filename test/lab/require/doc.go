// Package require lets a test say what it needs of the machine it runs on.
//
// Problem: unthrottle is tested on hosts that differ. One has cgroup v1 and
// two CPUs, the lab's guest has cgroup v2 and sixteen, a laptop has no root.
// A test that is skipped everywhere looks just like one that passes.
//
// Rule: a test names its needs in its first lines and nothing else decides.
//
//	func TestNarrowOnManyCPUs(t *testing.T) {
//		require.Root(t)
//		require.CPUs(t, 16)
//		root := require.CgroupV2(t)
//		...
//	}
//
// A need is found out by trying it (making a cgroup, loading a BPF program),
// never from a version. If it is not met the test is skipped with
//
//	needs <need>: <reason>; runs in <the lab | a host with X>
//
// for example "needs cpus=16: 2 CPUs are usable; runs in the lab". The command
// test/lab/cmd/skips reads that shape and lists what was skipped on the host and in
// the lab alike.
//
// What a machine is known to have is written into UNTHROTTLE_MUST, a comma
// list of needs: UNTHROTTLE_MUST=root,v2,cpus=16. An unmet need of that list
// fails the test instead of skipping it: a lab whose guest lost its cpuset
// controller must not look green.
//
// Under -short, and with UNTHROTTLE_PURE=1, every test that states a need is
// skipped, whatever the machine has and UNTHROTTLE_MUST says. What remains is
// pure: it can run in parallel, and the go command may cache it. Kernel is the
// need of a test that any Linux can run, but that starts real processes or
// waits for real time.
//
// `make test` leaves out experiments with CheckAll, and computes few cases where a test asks Cases for their number.
// `make check-all` sets UNTHROTTLE_CHECK_ALL=1 for these.
//
// `make test-all` sets UNTHROTTLE_ALL=1 and leaves nothing out. Elsewhere a test with
// TestAll is skipped, with its reason, and tests that repeat something many times ask
// Rounds how often: 200 rounds there are 20 elsewhere. In the lab's guest
// UNTHROTTLE_LAB=1 is set: CPU time is scarce, and rounds are always a tenth.
//
// Limits: needs are looked at one at a time; CgroupV1 and CgroupV2 look at the
// first writable mount of the kind, and never enable a controller that the
// machine has off. The package uses the standard library and x/sys only, so
// that every package's tests can import it.
//
// Sources: kernel Documentation/admin-guide/cgroup-v1/cpusets.rst and
// cgroup-v2.rst, sched-ext.rst; bpf(2); sd_booted(3).
package require
