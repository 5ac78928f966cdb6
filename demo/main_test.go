package demo

import (
	"os"
	"testing"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/topology"
	"github.com/unthrottle/unthrottle/workload"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workload.ChildCommand {
		os.Exit(workload.ChildMain(os.Args[2:]))
	}
	if os.Getenv(envVictim) != "" {
		os.Exit(victim())
	}
	os.Exit(m.Run())
}

// here opens this host.
func here(t testing.TB) (*cgroup.Host, topology.Machine) {
	t.Helper()
	h, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	m, err := topology.Read(os.DirFS("/sys"))
	if err != nil {
		t.Fatal(err)
	}
	return h, m
}
