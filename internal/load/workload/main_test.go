package workload

import (
	"os"
	"testing"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		os.Exit(ChildMain())
	}
	os.Exit(m.Run())
}
