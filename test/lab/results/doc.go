// Package results reads the output of `go test -json`, of one or several runs of the same tests on different machines.
//
// Problem: a test that the host skips for lack of CPUs runs in the lab, and vice versa. Each run by itself looks green
// with skips in it. The tests that every machine skipped are the ones that matter.
//
// Rule: Read turns a run into packages and tests with their last status. Merged, a test counts as skipped only if every
// run that knows it skipped it. The whole is good under four conditions: no test and no package failed, every package
// that began ended, each run ran at least one test, and no test was skipped everywhere for a need that UNTHROTTLE_MUST
// lists.
//
// Example: the host skips TestA (needs v2) and passes TestB; the lab passes TestA and skips TestB (needs v1): no test
// is skipped everywhere. With v1 and v2 both missing on the host and TestB skipped in the lab, TestB is listed with
// both reasons.
//
// Limits: the last 64 KiB of output of each test, and 1 MiB of a package.
//
// Sources: `go doc test2json`; cmd/go's build-output events (Go 1.24).
package results
