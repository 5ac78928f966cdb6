package probe

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// opened is a probe of the test's own, for tests that write the kernel side's state.
func opened(t *testing.T) *Probe {
	t.Helper()
	require.Root(t)
	require.BPF(t)
	p, err := Open(Options{Containers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// containerOf returns a cgroup of a tree as a probe watches it.
func containerOf(t *testing.T, tr *cgrouptest.Tree, path string) Container {
	t.Helper()
	id, err := tr.Host.ID(cgroup.CPU, path)
	if err != nil {
		t.Fatal(err)
	}
	return Container{ID: id, Path: path}
}

// counts reads a container.
func countsOf(t *testing.T, p *Probe, id uint64) Counts {
	t.Helper()
	c, err := p.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestKept: recordings one after the other have the same probe, until it is closed.
func TestKept(t *testing.T) {
	require.Root(t)
	require.BPF(t)
	var k Kept
	t.Cleanup(func() { _ = k.Close() })
	first, err := k.Open(Options{Containers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := k.Open(Options{Containers: 2}); err != nil || again != first {
		t.Errorf("a probe of its own, or %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if after, err := k.Open(Options{Containers: 2}); err != nil || after == first {
		t.Errorf("the closed probe, or %v", err)
	}
}
