package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// soaked is what "make soak-placement" recorded of one machine: every step was
// checked, and none was wrong.
type soaked struct {
	CPUs, Steps int
	Kinds       map[string]int
}

// readSoak reads the record; none if it was never made.
func readSoak(file string) ([]soaked, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []soaked
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

func (t *table) soak(b *strings.Builder) {
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
	fmt.Fprintf(b, `## Random steps

"make soak-placement": %d random steps on %d machines (of %s CPUs), in different orders of objectives, with
reserved, unavailable, isolated and offline CPUs. After each step, and after each move of a repair, a validator that shares no code
with the placer looked at the whole state; none was wrong. Steps: %s.

`, total, len(t.soaked), strings.Join(cpus, ", "), strings.Join(parts, ", "))
}
