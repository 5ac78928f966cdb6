// Package imports holds the one table that says which folder may import which,
// as a test.
//
// # Problem
//
// Data goes one way: kernel, see, explain, forecast, cure. An import against that
// direction compiles as well as any other, so only a table keeps it.
//
// # Rule
//
// A package belongs to the row with the longest matching folder. Its own code may
// import its own folder, the folders that the row names, and the leaves. Its tests
// may import anything, because a test may look at the whole.
//
// A second table names what must not be reached at all, over any number of steps:
// the shipped binary reaches no benchmark and no lab, and a pure package reaches no
// system call.
//
// # Worked example
//
//	internal/cure/policy imports internal/see/probe
//
// The row of internal/cure allows internal/see, so the first table is content. The
// second is not: policy is pure, and probe reaches the BPF loader.
//
// # Limits
//
// The test runs `go list`, so it needs the go command and the module cache.
package imports
