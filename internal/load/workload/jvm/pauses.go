package jvm

import (
	"math"
	"regexp"
	"strconv"
	"time"
)

// maxPauses that are kept.
const maxPauses = 1_000_000

// pauseLine is a pause in the unified GC log at level info.
var pauseLine = regexp.MustCompile(`GC\(\d+\) Pause .* (\d{1,9}\.\d{1,6})ms\s*$`)

// parsePause reads a line of a GC log; false: it is no pause.
func parsePause(line string) (time.Duration, bool) {
	found := pauseLine.FindStringSubmatch(line)
	if found == nil {
		return 0, false
	}
	ms, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return 0, false
	}
	return time.Duration(math.Round(ms * float64(time.Millisecond))), true
}
