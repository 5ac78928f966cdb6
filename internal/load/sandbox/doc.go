// Package sandbox makes cgroups for one experiment on this host and removes them.
// It is the only such code of the project: demo, bench, run and tests use it.
//
// # Problem
//
// An experiment needs real cgroups with real limits: on cgroup v1 with its separate
// hierarchies as on v2. It must not touch the cgroups of others. It may be killed
// at any moment.
//
// # Rule
//
// A sandbox is one cgroup per hierarchy below the scope, all of the same name. The
// groups of the experiment lie below it. The package writes to these alone.
//
// The name carries the owner: its PID, its start time and its PID namespace. The
// kernel reuses PIDs, so the start time tells two processes of one PID apart. A PID
// means another process in another namespace. The next start removes the sandboxes
// whose owner has ended. It ends no process for that, and it leaves the sandboxes
// of running owners alone.
//
// The sandbox has the highest weight unless Fair is set. It then gets the CPUs
// whenever it wants them, so that other load does not decide the figures.
//
// # Worked example
//
//	unthrottle-bench-4f1d09aa.4711.890123.4026531836/
//	    service/    quota 100 ms per 100 ms
//	    neighbour/
//
// A signal kills process 4711. The next run looks for a process 4711 that started
// 890,123 ticks after boot and finds none. It waits until the cgroups are empty and
// removes them.
//
// # Limits
//
//   - cgroup v2: the scope must enable cpu and cpuset for its children. The package
//     does not change the scope.
//   - At most [MaxGroups] cgroups.
//   - A sandbox of another PID namespace counts as in use.
package sandbox
