// Package report answers the questions of `unthrottle fleet report` from rows that an engine holds.
//
// # Rule
//
// The questions are files, sql/*.sql, in plain ANSI SQL, so that every engine runs them as they are. The script says
// which of them are tables for the others. SQL only selects and adds up; what a container needs is
// internal/demand/periodmodel's to say, and internal/demand/leastlimit's where its rows have no periods. An answer's
// columns are fields of a struct, by name.
//
// A service has one limit for all its containers, as a controller gives it: what the one that needs most needs. A
// container never gets more than it has: the question is what comes back at the same stops. One of which the need is
// not known keeps what it has.
//
// # Limits
//
// A table of all containers and their levels is held in memory: about 1 KB a container.
package report
