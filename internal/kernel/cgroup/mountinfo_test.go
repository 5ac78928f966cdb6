package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const docker = "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestPickMounts(t *testing.T) {
	mountsOf := func(cpu, set, acct Mount) map[Controller]Mount {
		return map[Controller]Mount{CPU: cpu, CPUSet: set, CPUAcct: acct}
	}
	v1 := func(dir, root string) Mount { return Mount{Version: V1, Dir: dir, Root: root} }
	readOnly := func(m Mount) Mount { m.ReadOnly = true; return m }
	together := v1("/sys/fs/cgroup/cpu,cpuacct", "/")
	v2 := Mount{Version: V2, Dir: "/sys/fs/cgroup", Root: "/"}
	unified := Mount{Version: V2, Dir: "/sys/fs/cgroup/unified", Root: "/"}
	own := readOnly(v1("/sys/fs/cgroup/cpu,cpuacct", docker))
	for name, want := range map[string]map[Controller]Mount{
		"v1-separate":         mountsOf(v1("/sys/fs/cgroup/cpu", "/"), v1("/sys/fs/cgroup/cpuset", "/"), v1("/sys/fs/cgroup/cpuacct", "/")),
		"v1-systemd-hybrid":   mountsOf(together, v1("/sys/fs/cgroup/cpuset", "/"), together),
		"v1-docker-container": mountsOf(own, readOnly(v1("/sys/fs/cgroup/cpuset", docker)), own),
		"v1-agent-pod": mountsOf(v1("/host/cgroup/cpu,cpuacct", "/"), v1("/host/cgroup/cpuset", "/"),
			v1("/host/cgroup/cpu,cpuacct", "/")),
		"v1-node-namespace": mountsOf(v1("/sys/fs/cgroup/cpu,cpuacct", "/../.."), v1("/sys/fs/cgroup/cpuset", "/"),
			v1("/sys/fs/cgroup/cpu,cpuacct", "/../..")),
		"v2-kubernetes": mountsOf(v2, v2, v2),
		"mixed":         mountsOf(unified, v1("/sys/fs/cgroup/cpuset", "/"), unified),
		"awkward":       {CPU: v1("/mnt/my cpu\tx\ny", `/a b\c`), CPUSet: v1("/a/longer/name/cpuset", "/")},
		"junk":          {},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "mountinfo", name))
		if err != nil {
			t.Fatal(err)
		}
		everything := func(Mount) bool { return true }
		controllers := func(Mount) []Controller { return []Controller{"io", CPUSet, CPU, "memory"} }
		if name == "v1-separate" || name == "v1-systemd-hybrid" {
			controllers = func(Mount) []Controller { return []Controller{"hugetlb"} }
		}
		got := pickMounts(parseMountinfo(string(text)), everything, controllers)
		for _, c := range Controllers() {
			if got[c].Mount != want[c] {
				t.Errorf("%s: %s:\n got %+v\nwant %+v", name, c, got[c].Mount, want[c])
			}
		}
	}
}

func TestPickMountsSkipsTheHidden(t *testing.T) {
	text := "1 2 0:31 / /hidden rw - cgroup cgroup rw,cpu\n2 2 0:31 /docker/x /seen ro - cgroup cgroup rw,cpu\n"
	got := pickMounts(parseMountinfo(text), func(m Mount) bool { return m.Dir != "/hidden" }, nil)
	if got[CPU].Dir != "/seen" {
		t.Errorf("got %+v", got[CPU])
	}
}

func FuzzMountinfo(f *testing.F) {
	for _, name := range []string{"v1-separate", "v1-systemd-hybrid", "v1-agent-pod", "v2-kubernetes", "awkward", "junk"} {
		text, err := os.ReadFile(filepath.Join("testdata", "mountinfo", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		mounts := parseMountinfo(text)
		if len(mounts) > maxCgroupMounts {
			t.Fatalf("%d mounts", len(mounts))
		}
		for _, m := range mounts {
			if !strings.HasPrefix(m.Dir, "/") || !strings.HasPrefix(m.Root, "/") || m.Version == 0 {
				t.Fatalf("bad mount %+v", m)
			}
		}
		for c, m := range pickMounts(mounts, func(Mount) bool { return true }, func(Mount) []Controller { return []Controller{CPU} }) {
			if m.Version == V1 && len(m.controllers) == 0 {
				t.Fatalf("%s on a hierarchy without controllers: %+v", c, m)
			}
		}
	})
}
