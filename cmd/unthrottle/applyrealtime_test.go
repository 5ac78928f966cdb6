package main

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Where the kernel has groups of real-time threads a new cgroup has no runtime:
// refused with the reason and the way out, beforehand and in a dry run, and
// nothing is written.
func TestRealtimeWithoutRuntime(t *testing.T) {
	require.Alone(t, ownCPU)
	tr := cgrouptest.New(t)
	busy := tr.Make("busy")
	tr.Limit(busy, 0.3)
	tr.Work(busy, 1)
	if text, err := tr.Host.Read(cgroup.CPU, busy, cgroup.FileRTRuntime); err != nil || strings.TrimSpace(text) != "0" {
		t.Skipf("this kernel has no groups of real-time threads (%q, %v)", text, err)
	}
	settings := tr.Settings()
	for _, more := range [][]string{{"--dry-run"}, nil} {
		got := unthrottle(t, append([]string{"apply", busy, "--remedy", "pin", "--realtime", "--scope", tr.Top,
			"--state-dir", tr.StateDir}, more...)...)
		if got.code != 2 || !strings.Contains(got.errors, "cpu.rt_runtime_us is 0") ||
			!strings.Contains(got.errors, "write one to that file") {
			t.Errorf("%v: exit code %d, %q", more, got.code, got.errors)
		}
	}
	if got := tr.Settings(); got != settings {
		t.Errorf("changed:\n%s\nwas\n%s", got, settings)
	}
}
