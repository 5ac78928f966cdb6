// Package recorded is the form of a file with the demand of real services, without their names.
//
// # Problem
//
// A fleet that is made up should want CPUs as real services do. Recordings of them are megabytes each and name hosts,
// threads and files.
//
// # Rule
//
// Of a recording this keeps one pair of numbers for each period of a quota: the CPU time that the service wanted, and
// how many CPUs wide. Both are of a replay on a host with many CPUs and a quota that is never spent
// (internal/sim/forecast, Load.Demand). bench/truth makes the file (make truth-demand), and fleet/generate reads it.
//
// # Worked example
//
//	{"kind": "web server", "period_us": 100000, "work_us": [0, 310000], "width": [0, 8]}
//
// is a service that wants nothing for 100 ms, and then 310 ms of CPU time on up to 8 CPUs.
//
// # Limits
//
// A pair has no order within its period. Clients send as the recorded ones did, however slow the answers are.
package recorded
