// Package suite builds the tree's test binaries, runs them in one guest, and
// turns what they print into `go test -json` events.
//
// Problem: a guest takes seconds to boot and has no Go. Tests are built here,
// statically, and run there one after another, each in the folder of its
// package with its testdata.
//
// Rule: the tests to run are those that state a need through lab/require,
// directly, through a helper, or through another package of the tree: only
// these can want what a host lacks. GoTest selects the same tests for `go test`
// on this host. The guest's layout is the tree's below /src. What the machine is known
// to have goes into UNTHROTTLE_MUST, so that in the lab a need that should be
// met fails the test.
//
// Example: package cgroup becomes /src/cgroup/cgroup.test, run in /src/cgroup
// with -test.v=test2json, and UNTHROTTLE_BIN=/usr/bin/unthrottle if the tree
// has that command.
//
// Limits: the guest has no Go and no source files; a test that wants to build
// something must take the binary of UNTHROTTLE_BIN. Output of one package is
// kept up to 16 MiB.
//
// Sources: `go help test`, `go doc test2json`.
package suite
