// Package report and the packages below it turn values into what people read:
// tables, pictures in text, pages, and the JSON of the contract.
//
// # Problem
//
// Twenty commands show their results. Each view knows the package whose results it shows;
// if views lay in one package, that one would know all of them.
//
// # Rule
//
// Each command has a view: a package named after it. A view gets values and a
// writer, and is told its style: how wide, whether in colour, whether in ASCII. It knows no files, cgroups or
// terminals. Views share the parts below shared/ and never import each other:
//
//	page       lines for a terminal: wrapping, colours
//	table      rows in columns that give way to a narrow terminal
//	histogram  distributions side by side
//	timeline   the characters of a timeline
//	figure     single figures, "-" for what was not measured
//	progress   the line that shows how far a long command is
//	jsonout    JSON in one form
//	cputree    the CPUs of a machine, nested
//	changes    what was or would be written, for every command that writes
//	trial      a scenario's figures, real or simulated
//	rows       the remedies of a forecast, and what is recommended
//	webpage    the style and the head of HTML pages
//	next       the command that a view proposes next
//
// What was not measured is "-" (null in JSON), never 0. Names that strangers chose
// are escaped. The same value gives the same text, so that outputs compare.
//
// # Example
//
// View topology of a hybrid desktop with 8 performance and 8 efficiency threads:
//
//	16 CPUs online, 1 socket, 1 NUMA node, 1 L3, 12 cores
//
//	Socket 0, NUMA node 0, L3 0  39 GiB
//	   performance [0 1] [2 3] [4 5] [6 7]
//	   efficiency  [8] [9] [10] [11] [12] [13] [14] [15]
//
//	[0 1]  a core and its hardware threads, by CPU number
//
// # Limits
//
// Text is laid out for characters one column wide.
package report
