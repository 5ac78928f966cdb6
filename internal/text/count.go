package text

import (
	"math"
	"strconv"
	"strings"
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

// CPUsAre is a list of CPUs in the kernel's form with its verb: "CPU 1 is", "CPUs 1-3 are".
func CPUsAre(list string) string {
	if strings.ContainsAny(list, ",-") {
		return "CPUs " + list + " are"
	}
	return "CPU " + list + " is"
}
