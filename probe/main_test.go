package probe

import (
	"os"
	"testing"

	"github.com/unthrottle/unthrottle/workload"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workload.ChildCommand {
		os.Exit(workload.ChildMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}
