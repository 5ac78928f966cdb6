// Package bugreport makes what a user sends with a report out of what was read from the host: it leaves out what is
// private, and packs the rest.
//
// # Rule
//
// What is kept is named, not what is dropped: keys of the configuration and fields of the journal whose values are safe.
// Everything else is left out or hashed. A hash stands for the same name everywhere in one report, and for another one in
// the next: it is salted. Command lines and environments are never read.
//
// # Worked example
//
//	level=WARN msg="not fixed" cgroup=/kubepods/burstable/pod12ab why="slo command \"/opt/probe\": exit status 1: no such user"
//
// becomes
//
//	level=WARN msg="not fixed" cgroup=/kubepods/burstable/h-5d41402a why="slo command (left out)"
//
// # Limits
//
// Texts of errors are cleared of paths, addresses, and the names that are known from the list of containers. An error of
// the kernel or of a library that quotes something else is kept, so the user sees the report before it is written.
package bugreport
