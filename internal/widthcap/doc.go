// Package widthcap is the cap of a cgroup's width as a value: what the remedy narrow asks of the sched_ext scheduler, what
// the journal keeps of it, and what the scheduler counts. It is pure; package holder carries it out.
//
// Problem: a planner chooses a cap, a transaction writes it and reads it back, and both need one spelling. The planner
// must not reach the code that loads BPF.
//
// Worked example: 2.5 CPUs with 500 ms of credit, at most 8 wide, is "2.5 CPUs, credit 500ms, widest 8". No cap is "".
//
// Limits: CPUs are exact to a thousandth, credit to a microsecond; that is what the spelling keeps.
package widthcap
