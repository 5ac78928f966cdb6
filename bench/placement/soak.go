package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/study"
)

// soaked is what "make soak-placement" recorded of one machine: every step was
// checked, and none was wrong.
type soaked struct {
	CPUs, Steps int
	Kinds       map[string]int
}

// readSoak reads the record; none if it was never made.
func readSoak(file string) ([]soaked, error) {
	var all []soaked
	_, err := study.Read(file, &all)
	return all, err
}

func (t *table) soak(p *study.Page) {
	if len(t.soaked) == 0 {
		return
	}
	total, kinds := 0, map[string]int{}
	var cpus []string
	for _, s := range t.soaked {
		total += s.Steps
		cpus = append(cpus, fmt.Sprint(s.CPUs))
		for kind, n := range s.Kinds {
			kinds[kind] += n
		}
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, kinds[kind]))
	}
	p.Line(`## Random steps

"make soak-placement": %d random steps on %d machines (of %s CPUs), in different orders of objectives, with
reserved, unavailable and isolated CPUs. After each step, and after each move of a repair, a validator that shares no code
with the placer looked at the whole state; none was wrong. Steps: %s.
`, total, len(t.soaked), strings.Join(cpus, ", "), strings.Join(parts, ", "))
}
