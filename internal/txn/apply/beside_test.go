package apply

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// runtime is a container runtime with an old copy of a container's settings. It writes all of them with each update, and
// what the update did not mean is written back.
type runtime struct {
	cgroup.FS
	path string
	copy []cgroup.FileValue
}

func (f runtime) Beside(c cgroup.Controller, path, file, _ string) (besides []cgroup.Beside) {
	if path != f.path || c != cgroup.CPU {
		return nil
	}
	for _, v := range f.copy {
		if now, err := f.Read(c, path, v.File); err == nil && v.File != file {
			besides = append(besides, cgroup.Beside{
				Value: cgroup.Value{Controller: c, Path: path, File: v.File, Value: now}, Becomes: v.Value})
		}
	}
	return besides
}

func (f runtime) Write(c cgroup.Controller, path, file, value string) error {
	beside := f.Beside(c, path, file, value)
	for _, v := range f.copy {
		if path == f.path && c == cgroup.CPU && v.File != file {
			if err := f.FS.Write(c, path, v.File, v.Value); err != nil {
				return err
			}
		}
	}
	if err := f.FS.Write(c, path, file, value); err != nil {
		return err
	}
	for _, v := range beside {
		if err := f.FS.Write(v.Controller, v.Path, v.File, v.Value.Value); err != nil {
			return err
		}
	}
	return nil
}

// A process that is killed while a runtime has written its own copy of other settings leaves none of that: the next writer
// puts them back, before it rolls back the transaction.
func TestKilledBesideARuntime(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		changed, points := 0, 0
		for n := 1; ; n += stride() {
			s := newScene(t, v)
			weight := cgroup.WeightFile(v)
			s.must(s.k.Write(cgroup.CPU, "/pods/a", weight, "300"))
			s.env.FS = runtime{s.k, "/pods/a", []cgroup.FileValue{{File: weight, Value: "700"}}}
			before := s.k.Snapshot()
			s.killAt(n)
			crashed, err := crashes(s.script)
			s.k.Before = nil
			if err != nil {
				t.Fatalf("point %d: %v", n, err)
			}
			if is, err := s.k.Read(cgroup.CPU, "/pods/a", weight); err != nil {
				t.Fatal(err)
			} else if is != "300" {
				changed++
			}
			if err := s.everythingBack(before); err != nil {
				t.Fatalf("killed at point %d: %v", n, err)
			}
			if is, err := s.k.Read(cgroup.CPU, "/pods/a", weight); err != nil || is != "300" {
				t.Fatalf("killed at point %d: the weight is %q, %v", n, is, err)
			}
			if !crashed {
				break
			}
			points = n
		}
		t.Logf("%d points, at %d of which the runtime's copy was in force", points, changed)
		if changed == 0 {
			t.Error("no kill came while the runtime's copy was in force")
		}
	})
}
