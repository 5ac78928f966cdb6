// Package study is the frame of the studies below bench: what each measures is its own, how it keeps and shows it is not.
//
// # Problem
//
// A study takes hours of a host that others use too. It is interrupted, goes on another day, and its page is read long
// after. So each piece is kept as it ends, with when, where and by which version it was measured, and the page is made of
// all pieces that are kept.
//
// # Rule
//
// [Lines] are small pieces, one JSON value a line of a file; [Read] and [Write] keep a large piece in a file of its own. Both
// have [Made]. [Turns] is the order in which variants are measured: each round begins with another, so that what drifts
// meets all alike. [Fill] fills in a page's template; [Row] writes a row of a table. [Spread] is how rounds are shown.
//
// # Worked example
//
// Three variants in two rounds are measured in the order 0 1 2, 1 2 0. Rounds of 3, 1 and 2 ms have the median 2 and go from
// 1 to 3.
//
// # Limits
//
// A line that was cut off by a crash is refused, with its number. Two programs that add to one file at a time both add, but
// neither sees the other's.
package study
