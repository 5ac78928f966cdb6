// Package kept is for long experiments that are started as tests. It reads how much to do, and keeps results, one JSON
// value a line, so that an interrupted run continues.
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

// Number returns the value of an environment variable, a whole number above 0, or otherwise if it is unset.
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

// Read returns the results in file, in the order in which they came; none without a file.
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

// Append adds a result to file and makes its folder if necessary.
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
