package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// A container's own file system shows its cgroup as the top: through the root directory of a process of it, the files are found
// and the process's cgroup is "/".
func TestOpenIn(t *testing.T) {
	proc := t.TempDir()
	files := map[string]string{
		"self/mountinfo": "",
		"7/mountinfo":    "36 35 0:31 /../abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
		"7/cgroup":       "0::/../abc\n",
		"7/root/sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
		"7/root/sys/fs/cgroup/cgroup.procs":       "7\n",
		"7/root/sys/fs/cgroup/cpu.max":            "50000 100000\n",
	}
	for name, text := range files {
		name = filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := OpenIn(proc, 7)
	if err != nil {
		t.Fatal(err)
	}
	path, ok, err := h.Of(7, CPU)
	if err != nil || !ok || path != "/" {
		t.Fatalf("%q, %v, %v", path, ok, err)
	}
	limit, err := ReadLimit(h, path)
	if cpus, limited := limit.Bound(); err != nil || !limited || cpus != 0.5 {
		t.Errorf("%+v, %v", limit, err)
	}
	if ours, err := Open(proc); err != nil || ours.Mode() != "none" {
		t.Errorf("in our own mount namespace: %v", err)
	}
}
