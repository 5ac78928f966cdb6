package require

import (
	"os"
	"strconv"
	"testing"
)

// Number returns the value of an environment variable, a whole number above 0, or otherwise if it is unset: how much an
// experiment that is started as a test does.
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
