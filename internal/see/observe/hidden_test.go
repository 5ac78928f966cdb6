package observe

import (
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// v1 may hide the threads of other PID namespaces. Their sum would be 0, so CPU use is not measured. A plain file
// stands for the namespace; its inode is not the host's.
func TestCPUTimeOfHiddenThreads(t *testing.T) {
	for name, c := range map[string]struct {
		version  cgroup.Version
		file     string
		measured bool
		word     string
	}{
		"another namespace": {cgroup.V1, "self/ns/pid", false, "hostPID: true"},
		"unknown":           {cgroup.V1, "self/other", true, "cannot determine"},
		"v2":                {cgroup.V2, "self/ns/pid", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, c.version, "/")
			f.podTree(c.version, 1)
			proc := t.TempDir()
			f.write(proc+"/"+c.file, "")
			f.write(proc+"/11/schedstat", "7000000 7 8\n")
			f.set(cgroup.CPU, "/pod/a", "tasks", "11")
			containers := named("/pod/a")
			containers[0].Group.CPUAcctPath = "/pod"
			o := f.window(f.sampler(Options{Proc: proc}), containers, func() {})[0]
			if (o.UsedCPUs != nil) != c.measured {
				t.Errorf("used %v, notes %q", o.UsedCPUs, o.NotMeasured)
			}
			said := slices.ContainsFunc(o.NotMeasured,
				func(n string) bool { return strings.Contains(n, "PID namespace") && strings.Contains(n, c.word) })
			if said != (c.word != "") {
				t.Errorf("notes %q, want %q", o.NotMeasured, c.word)
			}
		})
	}
}
