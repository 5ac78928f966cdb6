package cgroup

import (
	"os"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestOutsideHostPIDs(t *testing.T) {
	for name, c := range map[string]struct {
		proc    fstest.MapFS
		outside bool
		told    bool
	}{
		"the host's":    {fstest.MapFS{"self/ns/pid": {Sys: &syscall.Stat_t{Ino: 4026531836}}}, false, true},
		"another":       {fstest.MapFS{"self/ns/pid": {Sys: &syscall.Stat_t{Ino: 4026532641}}}, true, true},
		"no file":       {fstest.MapFS{}, false, false},
		"without inode": {fstest.MapFS{"self/ns/pid": {}}, false, false},
	} {
		outside, err := OutsideHostPIDs(c.proc)
		if outside != c.outside || (err == nil) != c.told {
			t.Errorf("%s: %v, %v", name, outside, err)
		}
	}
	if _, err := OutsideHostPIDs(os.DirFS("/proc")); err != nil {
		t.Errorf("here: %v", err)
	}
}
