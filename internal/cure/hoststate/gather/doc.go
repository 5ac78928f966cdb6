// Package gather reads the state of a host, as package hoststate describes it. It writes nothing.
//
// Problem: cgroups and processes appear and vanish while they are read, and on v1 the cpu and cpuset hierarchies list a
// process at different moments.
//
// Rule: a cgroup that vanishes is passed over. Where the two hierarchies disagree about a process, they are listed again,
// at most three times. More than [maxGroups] cgroups are an error, because a plan for half a host could leave other
// processes on exclusive CPUs.
//
// Worked example: a container forks between the two listings. Its cpuset then holds a process that the cpu hierarchy does
// not know. The second listing finds it in both.
//
// Limits: in a PID namespace other than the host's, v1 hides processes: Facts.HiddenProcesses says so.
//
// Sources: kernel/cgroup/cgroup-v1.c (pidlist_array_load), the kubelet's cpu_manager_state.
package gather
