// Package report turns values into what people read: tables, pictures in text,
// and the JSON of the contract. It knows no files, cgroups or terminals: it is
// given values and a writer, and told how wide and whether in colour.
//
// Rule: what was not measured is shown as "-" (null in JSON), never as 0; names
// that strangers chose are escaped; the same value gives the same text, so that
// outputs can be compared.
//
// # Example
//
// [Topology] of a hybrid desktop with 8 performance and 8 efficiency threads:
//
//	16 CPUs online, 1 socket, 1 NUMA node, 1 L3, 12 cores
//
//	Socket 0, NUMA node 0, L3 0  39 GiB
//	   performance [0 1] [2 3] [4 5] [6 7]
//	   efficiency  [8] [9] [10] [11] [12] [13] [14] [15]
//
//	[0 1]  a core and its hardware threads, by CPU number
//
// Limits: text is laid out for characters one column wide.
package report
