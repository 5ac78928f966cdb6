package require

import "testing"

// Unraced says that a test computes so much that the race detector, under which it takes eight times as long, leaves it
// out, and which tests let the detector see the same goroutines.
func Unraced(t testing.TB, seen string) {
	t.Helper()
	if seen == "" {
		t.Fatal("require.Unraced: say where the race detector sees the goroutines of this test")
	}
	if Raced {
		t.Skip("the race detector is on, and sees this: " + seen)
	}
}
