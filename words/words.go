// Package words puts figures into words: "1 CPU", "3 CPUs", "0.5 CPUs".
//
// # Problem
//
// Every table, refusal and plan has counts with their nouns, and "1 CPUs" looks
// like carelessness with what stands beside it.
//
// # Rule
//
// One of a thing is named in the singular, everything else, fractions and 0 too,
// in the plural. The other way round, a number that a user writes is a decimal.
//
// # Limits
//
// English only.
package words

import (
	"math"
	"strconv"
)

// Count is a number with a noun that has an s in the plural.
func Count(n int, noun string) string { return CountOf(n, noun, noun+"s") }

// CountOf is a number with a noun, of which both forms are given: "1 process",
// "3 processes".
func CountOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// CPUs is a number of CPUs, to a thousandth: a millicore.
func CPUs(n float64) string {
	text := strconv.FormatFloat(math.Round(1000*n)/1000, 'f', -1, 64)
	if text == "1" {
		return "1 CPU"
	}
	return text + " CPUs"
}
