// Package results reads what `go test -json` says, of one or several runs of
// the same tests on different machines.
//
// Problem: a test that is skipped on the host for want of CPUs runs in the lab,
// and the other way round. Each run by itself looks green with skips in it;
// what matters is the tests that were skipped everywhere.
//
// Rule: a run is read into packages and tests with their last status. Merged,
// a test counts as skipped only if every run that knows it skipped it. The
// whole is good if no test and no package failed, every package that began
// ended, each run had at least one test that ran, and nothing was skipped
// everywhere for a need that UNTHROTTLE_MUST lists.
//
// Example: the host skips TestA (needs v2) and passes TestB; the lab passes
// TestA and skips TestB (needs v1): nothing is skipped everywhere. With v1 and
// v2 both missing on the host and TestB skipped in the lab, TestB is listed
// with both reasons.
//
// Limits: of each test the last 64 KiB of output are kept, and 1 MiB of a
// package.
//
// Sources: `go doc test2json`; cmd/go's build-output events (Go 1.24).
package results
