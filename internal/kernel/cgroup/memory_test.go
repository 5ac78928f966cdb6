package cgroup

import (
	"errors"
	"testing"
)

// Limits and use on both versions. What is no number is refused.
func TestReadMemory(t *testing.T) {
	v1, v2 := newTree(t), newTree(t)
	v1.mount("cpu", "/", "cpu", "rw")
	v1.mount("memory", "/", "memory", "rw")
	v2.mount("cg", "/", "", "rw")
	v2.file("cg/cgroup.controllers", "cpuset cpu io memory\n")
	for name, limit := range map[string]string{"none": "9223372036854771712", "some": "1048576", "bad": "-1"} {
		v1.file("memory/"+name+"/memory.limit_in_bytes", limit+"\n")
		v1.file("memory/"+name+"/memory.usage_in_bytes", "5000\n")
		v1.file("memory/"+name+"/memory.stat", "cache 9\ninactive_file 1\ntotal_inactive_file 2000\n")
	}
	for name, limit := range map[string]string{"none": "max", "some": "1048576", "bad": ""} {
		v2.file("cg/"+name+"/memory.max", limit+"\n")
		v2.file("cg/"+name+"/memory.current", "5000\n")
		v2.file("cg/"+name+"/memory.stat", "anon 9\ninactive_file 2000\nactive_file 7\n")
	}
	for mode, h := range map[string]*Host{"v1": v1.open(), "v2": v2.open()} {
		if h.Mode() != mode {
			t.Errorf("%s: mode %s", mode, h.Mode())
		}
		m, err := ReadMemory(h, "/some")
		if err != nil || m.LimitBytes == nil || *m.LimitBytes != 1<<20 || m.WorkingBytes != 3000 {
			t.Errorf("%s: %+v, %v", mode, m, err)
		}
		if m, err = ReadMemory(h, "/none"); err != nil || m.LimitBytes != nil || m.WorkingBytes != 3000 {
			t.Errorf("%s, no limit: %+v, %v", mode, m, err)
		}
		if m, err = ReadMemory(h, "/bad"); err == nil || m != (MemoryUse{}) {
			t.Errorf("%s, no number: %+v", mode, m)
		}
		if _, err = ReadMemory(h, "/gone"); err == nil {
			t.Errorf("%s: read where there is none", mode)
		}
	}
	bare := newTree(t)
	bare.mount("cpu", "/", "cpu", "rw")
	if _, err := ReadMemory(bare.open(), "/"); !errors.Is(err, ErrNoController) {
		t.Errorf("without the controller: %v", err)
	}
}
