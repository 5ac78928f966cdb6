package results

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// runsKept is how many runs the file of the last runs has.
	runsKept = 10
	// TooOften is in how many of them a test may not fail once: then its failures have a cause.
	TooOften = 3
)

// FailedOnce adds a run to the file of the last runs, which has a line for each with the tests that failed once. It counts
// the runs of each test in the file.
func FailedOnce(file string, now []TestID) (runs map[string]int, err error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, id := range now {
		names = append(names, id.String())
	}
	lines := append(slices.Collect(strings.Lines(string(text))), strings.Join(names, " ")+"\n")
	lines = lines[max(0, len(lines)-runsKept):]
	runs = map[string]int{}
	for _, line := range lines {
		for _, name := range strings.Fields(line) {
			runs[name]++
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	return runs, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644)
}
