package names

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/text"
)

var (
	idA = strings.Repeat("0123456789abcdef", 4)
	idB = strings.Repeat("fedcba9876543210", 4)
)

const labelled = `{"com.docker.compose.project":"shop","com.docker.compose.service":"cart","other":"x"}`

func TestContainers(t *testing.T) {
	got, err := Containers([]byte(`[
		{"Id":"` + idA + `","Names":["/other/alias","/shop-cart-1"],"Image":"cart:2","Labels":` + labelled + `,"Ports":[]},
		{"Id":"` + idA + `","Names":["/twice"]},
		{"Id":"../../etc","Names":["/path"]},
		{"Id":"` + idB + `","Names":["/a\u001b[31mb"],"Image":"x\n","Labels":{"io.kubernetes.pod.name":"UP/..","com.docker.compose.service":"\u202e"}}]`))
	want := map[string]Names{
		idA: {Name: "shop-cart-1", Image: "cart:2", Project: "shop", Service: "cart"},
		idB: {Name: `a\x1b[31mb`, Image: `x\n`, Service: `\u202e`},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	for _, bad := range []string{"", "{", "null[", `{"message":"evil\u001b"}`, `[{"Id":7}]`} {
		if got, err := Containers([]byte(bad)); err == nil || got != nil || strings.Contains(err.Error(), "evil") {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

func TestContainersAreBounded(t *testing.T) {
	var all []map[string]string
	for i := range MaxContainers + 10 {
		all = append(all, map[string]string{"Id": fmt.Sprintf("%064x", i)})
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Containers(data); err != nil || len(got) != MaxContainers {
		t.Errorf("%d, %v", len(got), err)
	}
}

func TestDockerConfig(t *testing.T) {
	got, err := DockerConfig([]byte(`{"Name":"/web","Config":{"Image":"nginx:1","Labels":` + labelled + `}}`))
	if want := (Names{Runtime: Docker, Name: "web", Image: "nginx:1", Project: "shop", Service: "cart"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestStorage(t *testing.T) {
	got, err := Storage([]byte(`[{"id":"` + idA + `","names":["web"],"metadata":"{\"image-name\":\"nginx:1\",\"name\":\"web\"}"},
		{"id":"` + idB + `","names":[],"metadata":"{"},{"id":"x","names":["bad"]}]`))
	if diff := cmp.Diff(map[string]Names{idA: {Name: "web", Image: "nginx:1"}, idB: {}}, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

func TestParseBundle(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want Bundle
	}{
		"containerd's CRI": {`{"annotations":{"io.kubernetes.cri.container-name":"app","io.kubernetes.cri.container-type":"container",
			"io.kubernetes.cri.image-name":"cart:2","io.kubernetes.cri.sandbox-name":"cart-0","io.kubernetes.cri.sandbox-namespace":"shop"},
			"linux":{"cgroupsPath":"/kubepods/podx/` + idA + `"}}`,
			Bundle{Names: Names{Image: "cart:2", Namespace: "shop", Pod: "cart-0", PodContainer: "app", CRI: true},
				Cgroup: "/kubepods/podx/" + idA}},
		"a sandbox": {`{"annotations":{"io.kubernetes.cri.container-type":"sandbox","io.kubernetes.cri.sandbox-name":"cart-0",
			"io.kubernetes.cri.sandbox-namespace":"shop"},"linux":{"cgroupsPath":"kubepods-podx.slice:cri-containerd:` + idA + `"}}`,
			Bundle{Names: Names{Namespace: "shop", Pod: "cart-0", CRI: true, Sandbox: true}}},
		"CRI-O": {`{"annotations":{"io.container.manager":"cri-o","io.kubernetes.container.name":"app","io.kubernetes.pod.name":"cart-0",
			"io.kubernetes.pod.namespace":"shop","io.kubernetes.cri-o.ImageName":"cart:2"}}`,
			Bundle{Names: Names{Runtime: CRIO, Image: "cart:2", Namespace: "shop", Pod: "cart-0", PodContainer: "app", CRI: true}}},
		"Docker": {`{"mounts":[{"destination":"/etc/hostname","source":"/srv/docker/containers/` + idA +
			`/hostname"}],"linux":{"cgroupsPath":"/mine/` + idA + `"}}`,
			Bundle{Cgroup: "/mine/" + idA, DockerDir: "/srv/docker/containers/" + idA}},
		"paths that lead elsewhere": {`{"mounts":[{"destination":"/etc/hostname","source":"/srv/../containers/` + idA + `/hostname"},
			{"destination":"/etc/hostname","source":"/srv/containers/` + idB + `/hostname"}],"linux":{"cgroupsPath":"/a/../b"}}`, Bundle{}},
		"the root cgroup": {`{"linux":{"cgroupsPath":"/"}}`, Bundle{}},
		"nerdctl":         {`{"annotations":{"nerdctl/name":"web"}}`, Bundle{Names: Names{Name: "web"}}},
	} {
		if got, err := ParseBundle([]byte(c.file), idA); err != nil || got != c.want {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, c.want)
		}
	}
}

func TestParseMonitor(t *testing.T) {
	line := func(arguments ...string) string { return strings.Join(arguments, "\x00") + "\x00" }
	for _, c := range []struct {
		comm, line string
		want       Monitor
		ok         bool
	}{
		{"containerd-shim", line("/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id", idA, "-address",
			"/run/c.sock"), Monitor{Shim: true, Runtime: Docker, ID: idA}, true},
		{"containerd-shim", line("containerd-shim-runc-v2", "-namespace", "default", "-id", "web"),
			Monitor{Shim: true, Runtime: Containerd, ID: "web"}, true},
		{"containerd-shim", line("containerd-shim-runc-v2", "-id", "../../etc"), Monitor{}, false},
		{"containerd-shim", "", Monitor{}, false},
		{"containerd-shim", "-id", Monitor{}, false},
		{"conmon", line("/usr/bin/conmon", "-c", idA, "-b", "/srv/vfs-containers/"+idA+"/userdata", "-n", "web\x1b"),
			Monitor{ID: idA, Name: `web\x1b`, Bundle: "/srv/vfs-containers/" + idA + "/userdata"}, true},
		{"conmon", line("conmon", "-c", idA, "-b", "/srv/../x"), Monitor{ID: idA}, true},
		{"conmon", line("conmon", "-c", "web"), Monitor{}, false},
		{"bash", line("bash", "-c", idA), Monitor{}, false},
	} {
		got, ok := ParseMonitor(c.comm, c.line)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s %q: %+v %v", c.comm, c.line, got, ok)
		}
	}
}

// Whatever a runtime or a stranger writes: no crash, and every text bounded and safe.
func FuzzNames(f *testing.F) {
	f.Add([]byte(`[{"Id":"`+idA+`","Names":["/w"],"Image":"i","Labels":`+labelled+`,"metadata":"{\"image-name\":\"x\"}"}]`), "conmon")
	f.Add([]byte(`{"Name":"/w","Config":{"Image":"i","Labels":`+labelled+
		`},"annotations":{"nerdctl/name":"n"},"linux":{"cgroupsPath":"/a"}}`), "containerd-shim")
	f.Add([]byte("conmon\x00-c\x00"+idA+"\x00-n\x00x"), "conmon")
	f.Fuzz(func(t *testing.T, data []byte, comm string) {
		var all []Names
		if found, err := Containers(data); err == nil {
			for id, n := range found {
				if !IsID(id) {
					t.Fatalf("id %q", id)
				}
				all = append(all, n)
			}
		}
		if found, err := Storage(data); err == nil {
			for _, n := range found {
				all = append(all, n)
			}
		}
		if n, err := DockerConfig(data); err == nil {
			all = append(all, n)
		}
		if b, err := ParseBundle(data, idA); err == nil {
			all = append(all, b.Names)
			for _, path := range []string{b.Cgroup, b.DockerDir} {
				if path != "" && (path[0] != '/' || strings.Contains(path+"/", "/../")) {
					t.Fatalf("path %q", path)
				}
			}
		}
		if m, ok := ParseMonitor(comm, string(data)); ok {
			if !IsPlain(m.ID) || m.ID == ".." {
				t.Fatalf("id %q", m.ID)
			}
			all = append(all, Names{Name: m.Name})
		}
		for _, n := range all {
			for _, s := range []string{n.Name, n.Image, n.Project, n.Service, n.Namespace, n.Pod, n.PodContainer} {
				if utf8.RuneCountInString(s) > text.MaxName || s != text.Sanitize(s, text.MaxName) {
					t.Fatalf("%q is not safe", s)
				}
			}
		}
	})
}
