package remedy

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
)

// forking is a host whose target, known to the cpu hierarchy only, forks and
// loses a process each time that the cpuset it is in is about to be listed.
func forking(t *testing.T) (*host, container.Container) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	h.makeIn(cgroup.CPUSet, "/pod")
	h.write(cgroup.CPUSet, "/pod", cgroup.FileCPUs, "0-3")
	h.write(cgroup.CPUSet, "/pod", cgroup.FileMems, "0")
	h.makeIn(cgroup.CPU, "/pod")
	h.makeIn(cgroup.CPU, "/pod/a")
	h.limit("/pod/a", 1)
	c := h.run("/pod/a", 10)
	if err := h.k.Attach(cgroup.CPUSet, "/pod", 10); err != nil {
		t.Fatal(err)
	}
	c.Group.CPUSetPath = "/pod"
	h.containers[0] = c
	h.makeIn(cgroup.CPU, "/pod/b") // shares its cpuset, and is empty
	b := h.contain("/pod/b")
	b.Group.CPUSetPath = "/pod"
	h.containers[1] = b
	child := 1000
	h.k.Before = func(op cgroupmodel.Op) error {
		if op.Controller == cgroup.CPUSet && op.Path == "/pod" && op.File == cgroup.FileProcs {
			if child > 1001 {
				h.k.Exit(child - 1)
			}
			h.k.Fork(10, child)
			child++
		}
		return nil
	}
	return h, c
}

func TestPinOfOneThatForks(t *testing.T) {
	h, c := forking(t)
	if _, err := Make(h.facts(), c, Request{Kind: Pin}); err != nil {
		t.Fatalf("all processes in /pod are its own: %v", err)
	}
	// A stranger is still found among them.
	h.k.Before = nil
	h.k.Spawn("/pod", 77)
	if why := refusal(t, h.facts(), c, Request{Kind: Pin}).Error(); !strings.Contains(why, "/pod above it holds 1 process") {
		t.Error(why)
	}
}
