// Package sandbox gives a run cgroups of its own on this host, and takes them away
// again.
//
// # Problem
//
// An experiment needs real cgroups with real limits, on cgroup v1 with its
// separate hierarchies as on v2, beside others whose cgroups it must not touch;
// and it may be killed at any moment.
//
// # Rule
//
// A home is one cgroup per hierarchy below the scope, all of the same name, with
// the run's cgroups below it. Only those are written. The name carries who made
// it: PID, its start time (a PID is given again) and its PID namespace (where it
// means another process). The next start removes the homes of owners who are
// gone; it kills nobody for that, and leaves alone what a living one uses.
//
// The home has the highest weight unless Fair is asked for: the CPUs are then its
// own whenever it wants them, and other load does not decide the figures.
//
// # Worked example
//
//	unthrottle-bench-4f1d09aa.4711.890123.4026531836/
//	    service/    quota 100 ms per 100 ms
//	    neighbour/
//
// 4711 is killed. The next run finds that no process 4711 that started 890,123
// ticks after boot exists, waits until the cgroups are empty, and removes them.
//
// # Limits
//
//   - cgroup v2: the scope must hand cpu and cpuset to its children already; it
//     is not ours to change.
//   - At most [MaxGroups] cgroups.
//   - A home of another PID namespace counts as in use.
package sandbox
