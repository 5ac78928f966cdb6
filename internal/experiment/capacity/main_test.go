package capacity

import (
	"os"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case workload.ChildCommand:
			os.Exit(workload.ChildMain())
		case service.Command:
			os.Exit(service.Main())
		case loadgen.Command:
			os.Exit(loadgen.Main())
		}
	}
	os.Exit(m.Run())
}
