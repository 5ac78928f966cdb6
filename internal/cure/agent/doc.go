// Package agent does continuously and by rules what the commands do once:
// it looks at every container each second, exports what it sees, and, where the
// rules say so, applies remedies and keeps them true.
//
// # The rule
//
// It observes only, unless the file says "mode: apply". Even then it applies
// nothing whose effect it could not verify: a rule needs an slo with a command,
// and what the user's own latency does not show to be better is undone and not
// tried again for RetryAfter. A container gets a remedy only after it was
// stopped above the bound in Persist rounds in a row, and only within the
// budget: so many containers at a time, so many changes a minute, so large a
// part of the CPUs.
//
// A secondary, which takes only what is left, needs neither a finding nor an slo.
// What its CPUs cost those who lend them is found out by trial: lent and not lent
// by turns, and taken back where the owner uses more without.
//
// What is in force is kept true: containers that appear are moved off exclusive
// CPUs within a second, transactions of containers that are gone end, and
// settings that somebody else changed are counted as drift. CPUs of ours are set
// again MaxReasserts times; then it yields.
//
// # Worked example
//
// With interval 1s and bound 1%, a container that is stopped for 750 ms of
// each second is worth a remedy after 5 s. Its rule says auto and p99<20ms. The
// agent plans pin, asks the latency source, applies, asks again, keeps it since
// p99 fell from 97 to 12 ms, and exports the outcome beside what was expected.
//
// # Limits
//
// One change at a time. At most MaxContainers are exported. /metrics and
// /healthz are all that the network gets: nothing can be changed over it.
// When the agent ends, what it applied stays in force (and unguarded against
// newcomers) until it starts again or `unthrottle restore` puts it back.
package agent
