// Package kept is for long experiments that are started as tests: how much is to
// be done, and the results of what was, one JSON value a line, so that a run that
// was interrupted goes on.
package kept

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Number is what an environment variable says, a whole number above 0, or
// otherwise where it is unset.
func Number(t testing.TB, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: a number above 0 is wanted", variable, text)
	}
	return n
}

// Read gives the results that file holds, in the order in which they came; none
// where there is no file yet.
func Read[T any](t testing.TB, file string) (all []T) {
	t.Helper()
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r T
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v: remove it to begin anew", file, err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("%s: %v: remove it to begin anew", file, err)
	}
	return all
}

// Append adds a result to file, whose folder is made if need be.
func Append[T any](t testing.TB, file string, r T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := json.NewEncoder(f).Encode(r); err != nil {
		t.Fatal(err)
	}
}
