package remedy

import (
	"strconv"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// WordsOf are the words after "apply TARGET" that put a row of a forecast in force; nil: none does, as of a setting of the
// service.
//
// Worked example: a row of burst, 12 ms in a period of 20 ms: --remedy burst --burst 12ms --period 20ms.
func WordsOf(row forecast.Remedy) []string {
	r, refused := RequestOf(row, Request{})
	if refused != "" {
		return nil
	}
	words := []string{"--remedy", string(r.Kind)}
	if r.Via != "" {
		words = append(words, "--via", r.Via)
	}
	if r.CPUs > 0 {
		words = append(words, "--cpus", strconv.Itoa(r.CPUs))
	}
	if r.Burst > 0 {
		words = append(words, "--burst", r.Burst.String())
	}
	if r.Period > 0 {
		words = append(words, "--period", r.Period.String())
	}
	if r.Credit > 0 {
		words = append(words, "--credit", r.Credit.String())
	}
	if r.Factor > 0 {
		words = append(words, "--factor", strconv.FormatFloat(r.Factor, 'g', -1, 64))
	}
	return words
}
