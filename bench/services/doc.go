// Package services starts other people's programs with a load, for studies: real services from Debian's packages, each in a cgroup of its
// own with a limit, and a client outside it.
//
// # Problem
//
// Our own workloads name their threads and do one thing each. Real services share names, fork, collect garbage and talk to clients. What
// is claimed of services has to be measured on them, and studies that start them in ways of their own could not be compared.
//
// # Rule
//
// A [Case] of cases.yaml, others.yaml or wide.yaml is one service, or a chain of them: its files, the programs that are started, its
// limit, and the streams of requests that a client sends, open-loop, so that latency counts from the intended time of each request.
// [Open] makes a [Stage], the cgroups and the folder of a case; [Stage.Serve] starts its programs there and returns when all of them
// answer; [RunClient] measures once, in a process of its own. The main of a program of a study that uses it is [Main].
//
// # Worked example
//
//	s, err := services.Open(host, c)
//	of, err := s.Serve(ctx, c)
//	result, err := services.RunClient(ctx, services.Order{Requests: of.Requests, Plan: loadgen.Plan{Streams: of.Streams, …}})
//	err = s.Close()
//
// # Limits
//
// It needs root, writable cgroups, and the packages, of which [Case.Missing] says which are not installed.
package services
