package container

import (
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

var (
	idA  = strings.Repeat("0123456789abcdef", 4)
	idB  = strings.Repeat("fedcba9876543210", 4)
	uid  = "3f5a1c2e-0d4b-4c6a-9e8f-1234567890ab"
	uidU = strings.ReplaceAll(uid, "-", "_")
	hash = strings.Repeat("0a1b", 8)
)

// The shapes are those of the runtimes' own sources and documentation (see doc.go); the ids are invented.
var recogniseTable = []struct {
	path                    string
	runtime, id, unit, name string
	podUID                  string
	depth                   int
}{
	{"/docker/" + idA, Docker, idA, "", "", "", 2},
	{"/docker/" + idA + "/system.slice/nginx.service", Docker, idA, "", "", "", 2},
	{"/docker/" + idA + "/docker/" + idB, Docker, idA, "", "", "", 2},
	{"/docker/" + idA + "/kubelet/kubepods/pod" + uid + "/" + idB, Docker, idA, "", "", "", 2},
	{"/system.slice/docker-" + idA + ".scope", Docker, idA, "docker-" + idA + ".scope", "", "", 2},
	{"/system.slice/docker-" + idA + ".scope/init", Docker, idA, "docker-" + idA + ".scope", "", "", 2},
	{"/docker/buildkit/abcdefghij0123456789abcde", Docker, "abcdefghij0123456789abcde", "", "", "", 3},
	{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uidU + ".slice/cri-containerd-" + idA + ".scope",
		Containerd, idA, "cri-containerd-" + idA + ".scope", "", uid, 4},
	{"/kubepods.slice/kubepods-pod" + uidU + ".slice/crio-" + idA + ".scope/container", CRIO, idA, "crio-" + idA + ".scope", "", uid, 3},
	{"/kubepods/besteffort/pod" + hash + "/" + idA, Kubernetes, idA, "", "", hash, 4},
	{"/e2ek/kubepods/pod" + uid + "/" + idA + "/nested", Kubernetes, idA, "", "", uid, 4},
	{"/kubepods/burstable/pod" + uid + "/crio-" + idA, CRIO, idA, "", "", uid, 4},
	{"/system.slice/containerd.service/kubepods-burstable-pod" + uidU + ".slice:cri-containerd:" + idA,
		Containerd, idA, "", "", uid, 3},
	{"/machine.slice/libpod-" + idA + ".scope/container", Podman, idA, "libpod-" + idA + ".scope", "", "", 2},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + idA + ".scope", Podman, idA, "libpod-" + idA +
		".scope", "", "", 5},
	{"/libpod_parent/libpod-" + idA, Podman, idA, "", "", "", 2},
	{"/machine.slice/libpod-conmon-" + idA + ".scope", Systemd, "", "libpod-conmon-" + idA + ".scope",
		"libpod-conmon-" + idA + ".scope", "", 2},
	{"/lxc/web1", LXC, "web1", "", "web1", "", 2},
	{"/lxc.payload.web1/system.slice/cron.service", LXC, "web1", "", "web1", "", 1},
	{"/lxc.payload/web1", LXC, "web1", "", "web1", "", 2},
	{"/nomad.slice/share.slice/" + uid + ".redis.scope", Nomad, uid + ".redis", uid + ".redis.scope", "redis", "", 3},
	{"/nomad/share/" + uid + ".redis", Nomad, uid + ".redis", "", "redis", "", 3},
	{"/ecs/" + hash + "/" + idA, ECS, idA, "", "", "", 3},
	{"/ecs/" + hash + "/" + hash + "-1234567", ECS, hash + "-1234567", "", "", "", 3},
	{"/ecs/cluster/" + hash + "/" + idA, ECS, idA, "", "", "", 4},
	{"/ecstasks.slice/ecstasks-" + hash + ".slice/docker-" + idA + ".scope", Docker, idA, "docker-" + idA + ".scope", "", "", 3},
	{"/mesos/" + uid, Mesos, uid, "", "mesos/" + uid, "", 2},
	{"/mesos/" + uid + "/mesos/" + uid, Mesos, uid, "", "mesos/" + uid, "", 2},
	{"/mesos/task_1.web", Mesos, "task_1.web", "", "mesos/task_1.web", "", 2},
	{"/batch/mesos/" + uid, Mesos, uid, "", "mesos/" + uid, "", 3},
	{"/system.slice/nginx.service", Systemd, "", "nginx.service", "nginx.service", "", 2},
	{"/system.slice/nginx.service/worker", Systemd, "", "nginx.service", "nginx.service", "", 2},
	{"/user.slice/user-0.slice/session-3.scope", Systemd, "", "session-3.scope", "session-3.scope", "", 3},
	{"/user.slice/user-1000.slice/user@1000.service/app.slice/a.service", Systemd, "", "a.service", "a.service", "", 5},
}

func TestRecognise(t *testing.T) {
	for _, c := range recogniseTable {
		got, ok := recognise(c.path)
		want := identity{depth: c.depth, runtime: c.runtime, id: c.id, name: c.name, podUID: c.podUID, unit: c.unit, qos: got.qos}
		if !ok || got != want || (got.qos != "") != (c.podUID != "") {
			t.Errorf("%s:\n got %+v %v\nwant %+v", c.path, got, ok, want)
		}
	}
}

// A runtime that a path shows is one that a target may begin with, and each of these has a path above.
func TestEachRuntimeIsAPrefix(t *testing.T) {
	var recognised []string
	for _, c := range recogniseTable {
		recognised = append(recognised, c.runtime)
	}
	for _, mark := range marks {
		recognised = append(recognised, mark.runtime)
	}
	slices.Sort(recognised)
	recognised = slices.Compact(recognised)
	if prefixes := slices.Sorted(slices.Values(runtimePrefixes)); !slices.Equal(recognised, prefixes) {
		t.Errorf("recognised are %v, a target may begin with %v: a runtime needs a row in recogniseTable and a place "+
			"in runtimePrefixes", recognised, prefixes)
	}
}

func TestQoS(t *testing.T) {
	for path, want := range map[string]string{
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uidU + ".slice/cri-containerd-" + idA + ".scope": Burstable,
		"/kubepods.slice/kubepods-pod" + uidU + ".slice/crio-" + idA + ".scope":                                              Guaranteed,
		"/kubepods/besteffort/pod" + hash + "/" + idA:                                                                        BestEffort,
		"/kubepods/pod" + uid + "/" + idA:                                                                                    Guaranteed,
		"/kubepods/burstable/pod" + uid + "/crio-" + idA:                                                                     Burstable,
		"/system.slice/containerd.service/kubepods-besteffort-pod" + uidU + ".slice:cri-containerd:" + idA:                   BestEffort,
		"/mine/pod" + uid + "/" + idA:                                                                                        "",
		"/docker/" + idA:                                                                                                     "",
	} {
		if got, ok := recognise(path); !ok || got.qos != want {
			t.Errorf("%s: %q, %v; want %q", path, got.qos, ok, want)
		}
	}
}

func TestScopeOf(t *testing.T) {
	pod := "/kubepods/burstable/pod" + uid
	c := Container{Group: cgroup.Group{Path: pod + "/" + idA}}
	for path, want := range map[string]string{c.Group.Path: ScopeOwn, pod: ScopePod, "/kubepods/burstable": ScopeSlice,
		"/": ScopeSlice, "/other": "", "": ""} {
		if got := c.ScopeOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	c = Container{Group: cgroup.Group{Path: "/mine/p/c"}, Pod: "p"}
	if got := c.ScopeOf("/mine/p"); got != ScopePod {
		t.Errorf("a pod's cgroup of another name: %q", got)
	}
}

func TestRecogniseNothing(t *testing.T) {
	for _, path := range []string{"", "/", "/a/b", "/kubepods", "/kubepods/pod" + uid, "/docker", "/docker/" + idA[:63],
		"/docker/" + strings.ToUpper(idA), "/system.slice", "/.service", "/a\n/\xff", "/pod" + uid + "x/" + idA} {
		if got, ok := recognise(path); ok {
			t.Errorf("%q: recognised as %+v", path, got)
		}
	}
}

func FuzzRecognise(f *testing.F) {
	for _, c := range recogniseTable {
		f.Add(c.path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, ok := recognise(path)
		if !ok {
			return
		}
		if got.depth < 1 || got.depth > depth("/"+strings.TrimPrefix(path, "/")) {
			t.Fatalf("%q: depth %d", path, got.depth)
		}
		if got.runtime == "" || got.id == "" && got.unit == "" {
			t.Fatalf("%q: recognised as nothing: %+v", path, got)
		}
		// A cgroup below a container belongs to it.
		if below, ok := recognise(path + "/below"); got.runtime != Systemd && (!ok || below != got) {
			t.Fatalf("%q/below: %+v, want %+v", path, below, got)
		}
	})
}
