// Package agent does continuously and by rules what the commands do once: it observes every container each second,
// exports what it observes, and, where the rules say so, applies remedies and reconciles them.
//
// # The rule
//
// The agent only observes, unless the file says "mode: apply". Even then it applies only remedies whose effect it can
// verify. A rule needs an slo with a command. If the user's own latency does not improve, the agent undoes the remedy and
// waits retryAfter before it tries again. A container gets a remedy only after it was stopped above the bound in persist
// of its last persistWithin rounds, and in their mean, and only within the budget: a number of containers at a time, a number of
// changes a minute, and a share of the CPUs.
//
// A secondary uses only idle CPUs, so that it needs neither a finding nor an slo. A trial measures what sharing costs the
// owners of its CPUs: the CPUs are shared and revoked by turns. They stay revoked where the owner uses more without
// sharing.
//
// The agent reconciles what is in force. It moves containers that appear off exclusive CPUs within a second, and restores
// transactions of containers that are gone. It counts settings that another program changed as drift. If another program
// overwrites CPUs of ours, the agent writes them again, at most maxReasserts times. Then it gives up and logs an error.
//
// # Cost
//
// The agent mostly sleeps, and is set up for that (frugal). It tells what its CPU time goes to (spent). With a budget of
// its own it drops recordings, then period rows, then its rate, and never what keeps others safe (shedder).
//
// # Worked example
//
// With interval 1s and bound 1%, a container that is stopped for 750 ms of each second gets a remedy after 5 s. Its rule
// says auto and p99<20ms. The agent plans pin, asks the latency source, applies, and asks again. It keeps the remedy,
// because p99 fell from 97 to 12 ms, and exports the outcome beside the forecast.
//
// # Limits
//
// One change at a time. At most maxContainers are exported. Nothing can be changed over HTTP, and what names all containers with their
// use answers on loopback addresses and a socket only. When the agent ends, its changes stay in force until it starts again or
// `unthrottle restore` restores them. What is on trial is undone. In between, new containers are not moved off exclusive CPUs.
package agent
