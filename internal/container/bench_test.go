package container

import (
	"fmt"
	"os"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// BenchmarkLister lists 200 real cgroups, all known already, as the agent does every second.
func BenchmarkLister(b *testing.B) {
	require.Root(b)
	h, err := cgroup.Open("/proc")
	if err != nil {
		b.Fatal(err)
	}
	base := fmt.Sprintf("/unthrottle-lister-%d", os.Getpid())
	var made []string
	remove := func() {
		for i := len(made) - 1; i >= 0; i-- {
			_ = h.Remove(cgroup.CPU, made[i])
		}
	}
	defer remove()
	for i := -1; i < 200; i++ {
		path := base
		if i >= 0 {
			path = fmt.Sprintf("%s/%d", base, i)
		}
		if err := h.Make(cgroup.CPU, path); err != nil {
			b.Fatal(err)
		}
		made = append(made, path)
	}
	l := NewLister(h, Options{Scope: base})
	for b.Loop() {
		if containers, err := l.List(); err != nil || len(containers) != 200 {
			b.Fatalf("%d, %v", len(containers), err)
		}
	}
}
