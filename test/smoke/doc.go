// Command smoke runs every make target in its shortest form, in a fresh clone: make smoke.
//
// Problem: a target outside the daily work breaks unseen, and the first user who
// needs it finds out. bench/agent/go.sum lacked a module for weeks.
//
// Rule: each target of the Makefile, and of the files that it includes, is a row of one
// table. The row has the arguments that make the target short, or says why the target
// does not run here and what covers it. A target without a row fails a test, and so
// does a row without a target. The clone is one of HEAD: what is not committed is not
// in it, and the pages that targets write are not those of the tree.
//
// Example: "fuzz" runs as make fuzz FUZZTIME=1x FUZZ_PACKAGES=./internal/kernel/procfs:
// each fuzz target of one package once, not all of them for 20 s each.
//
// Limits: a target counts as good if make ends with 0. Its figures mean nothing in so
// short a time. It needs root, as make check-all does, and what that has fetched.
package main
