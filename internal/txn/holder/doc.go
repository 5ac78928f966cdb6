// Package holder keeps the sched_ext scheduler behind narrow loaded while a cap is in force, and sets the caps.
//
// Problem: the kernel unloads a BPF scheduler when the process that attached it ends. A command that applies a remedy ends
// at once. So another process has to hold the scheduler, and everyone has to be told when it ends.
//
// Rule: [Host.Write] starts the holder where no scheduler of ours runs: this program again, detached, with the hidden
// command [Command]. The holder attaches the scheduler and notes itself in the state directory ([Holder]). Caps go through
// the scheduler's pinned maps, from any process. The holder ends by itself some seconds after the last cap is gone. A lock
// in the state directory keeps it from ending while a cap is being set.
//
// If the holder dies, by SIGKILL too, the kernel puts every thread under its own scheduler and enforces the quotas again,
// which narrow never takes off. Nothing has to notice for that. The note then names a process that does not run, and
// status says that the cap is not in force.
//
// Worked example: `apply web --remedy narrow --via sched_ext` journals the cap "2 CPUs, credit 400ms". Write finds no
// scheduler and starts process 4711. That attaches the scheduler, writes scheduler.json, and answers "ready". Write sets
// the cap of web's cgroup. `restore` removes it, and process 4711 ends.
//
// Limits: one scheduler at a time on a host; a holder serves all state directories of it. Where the service manager kills
// what a service started, the holder ends with the agent, and the quotas bind again.
package holder
