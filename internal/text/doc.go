// Package text makes text for people: counts with their nouns, lines that fit a
// terminal, and strangers' names and paths made safe to print. It is a leaf: it
// imports nothing of ours.
//
// # Problem
//
// Every table, refusal and plan has counts with their nouns, and "1 CPUs" looks
// careless. Names of containers, threads and cgroups come from strangers: they
// may hold control characters that move the cursor, or bytes that are not UTF-8.
//
// # Rule
//
// One of a thing takes the singular; all else, fractions and 0 too, the plural.
// [Sanitize] bounds and escapes a name for a terminal, with loss. [EscapePath]
// escapes a path for JSON without loss; [UnescapePath] is its inverse. [IDsOnce] shortens
// ids that a message repeats. [Fill], [Cut]
// and [Pad] count columns without colours ([Width]).
//
// # Worked example
//
//	Count(1, "CPU")              1 CPU
//	CPUs(0.5)                    0.5 CPUs
//	Sanitize("a\x1b[2J", 0)      a\x1b[2J, as ten visible characters
//	EscapePath("/a\xffb")        /a\xffb, as eight characters of ASCII
//
// # Limits
//
// English only. Every rune counts as one column of a terminal.
package text
