// Package docs holds the pages to what the program prints.
//
// # Problem
//
// A page that shows a command and its output is right on the day on which it is
// written. Then the output changes, and no compiler reads the page.
//
// # Rule
//
// Every fenced block of README.md and docs/ that begins with "$ " is a row of one
// table. A block without a row fails the test, and so does a row without a block.
// The row says how the output is made:
//
//   - offline: from files, on any machine. The output is compared byte by byte.
//   - in a scene: on this kernel, in cgroups of the test's own. The output is
//     compared in shape.
//   - elsewhere: not here, with the reason and the test that covers the output.
//
// The shape of a line is its words. Numbers, times, ids and drawings carry none, and
// a line without words has no shape. Lines that only some runs print stand in the
// row as optional, with the reason.
//
// "make docs" writes fresh output into the pages. What a
// page shows of it stands in the row too, so that the cuts ("...") stay.
//
// # Worked example
//
//	before:  /shop/checkout        0.5  0.50      30/30   479-957ms/s  0-1   self
//	after:   /shop/checkout        0.5  0.49      29/30   480-961ms/s  0-1   self
//	shape:   /shop/checkout 0 0 0 T/s 0 self
//
// # Limits
//
//   - The scenes need root, cgroup v1 and two CPUs: the pages show such a host.
//   - The scope of the test stands before each path in the output. It is taken out, and
//     columns that it made wider are made narrow again.
//   - Prose beside a block is not compared.
package docs
