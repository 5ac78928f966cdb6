package scx

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestRowsBecomeFree builds the scheduler's headers for this machine, and lets another CPU act at every moment of the ticks
// in which a row becomes free. No thread may end up below the cap of another cgroup.
func TestRowsBecomeFree(t *testing.T) {
	program := filepath.Join(t.TempDir(), "rows")
	build := exec.CommandContext(t.Context(), require.CCompiler(t), "-std=gnu17", "-O1", "-w", "-o", program, "testdata/rows.c")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
