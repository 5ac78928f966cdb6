package observe

import (
	"fmt"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Containers without a process cost nearly nothing, are counted, and are there again as soon as a process is.
func TestVacantContainersCostNothing(t *testing.T) {
	const many = 300
	f := newFake(t, cgroup.V1, "/")
	f.v1("/busy", 100000, 0, 0, 0, 0, 0)
	f.set(cgroup.CPU, "/busy", cgroup.FileProcs, "7")
	f.v1("/outer", -1, 0, 0, 0, 0, 0) // its processes are below
	f.v1("/outer/inner", -1, 0, 0, 0, 0, 0)
	f.set(cgroup.CPU, "/outer/inner", cgroup.FileProcs, "8")
	paths := []string{"/busy", "/outer"}
	for i := range many {
		path := fmt.Sprintf("/idle%d", i)
		f.v1(path, -1, 0, 0, 0, 0, 0)
		paths = append(paths, path)
	}
	w := f.watch(WatchOptions{LeaveVacant: true, List: func() ([]container.Container, error) { return named(paths...), nil }})
	w.run(3 * time.Second)
	if s := w.snapshots[2]; s.Vacant != 0 || len(s.Observations) != many+2 {
		t.Errorf("in the third round %d vacant, %d observations: newcomers have no process yet", s.Vacant, len(s.Observations))
	}
	w.run(30 * time.Second)
	last := w.snapshots[len(w.snapshots)-1]
	if last.Vacant != many || len(last.Observations) != 2 || last.Containers != many+2 {
		t.Fatalf("%d vacant, %d observations of %d", last.Vacant, len(last.Observations), last.Containers)
	}
	before := w.sampler.Reads()
	w.run(30 * time.Second)
	if reads := w.sampler.Reads() - before; reads > 30*2*8+2*many {
		t.Errorf("%d reads in 30 s", reads)
	}
	if handles := w.snapshots[len(w.snapshots)-1].Handles; handles > 30 {
		t.Errorf("%d open files", handles)
	}

	f.set(cgroup.CPU, "/idle5", cgroup.FileProcs, "9")
	w.run(3 * time.Second)
	last = w.snapshots[len(w.snapshots)-1]
	if last.Vacant != many-1 || len(last.Observations) != 3 || last.Observations[2].Window != time.Second {
		t.Errorf("after a process came: %d vacant, %d observations", last.Vacant, len(last.Observations))
	}
}

// Without inotify, and for a process that comes without a write, a container is there again after some rounds.
func TestAProcessThatComesUnseen(t *testing.T) {
	f := newFake(t, cgroup.V1, "/")
	f.v1("/a", -1, 0, 0, 0, 0, 0)
	w := f.watch(WatchOptions{LeaveVacant: true, List: listed("/a")})
	w.notifier.close()
	w.run(30 * time.Second)
	if s := w.snapshots[len(w.snapshots)-1]; s.Vacant != 1 {
		t.Fatalf("%d vacant", s.Vacant)
	}
	f.set(cgroup.CPU, "/a", cgroup.FileProcs, "9")
	w.run((vacantTurn + 2) * time.Second)
	if s := w.snapshots[len(w.snapshots)-1]; s.Vacant != 0 || len(s.Observations) != 1 {
		t.Errorf("%d vacant, %d observations", s.Vacant, len(s.Observations))
	}
}
