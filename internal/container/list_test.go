package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container/runtimes"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// node is a fake host with one v2 mount, log folders and docker's data.
type node struct {
	t   *testing.T
	dir string
}

func newNode(t *testing.T) *node {
	n := &node{t, t.TempDir()}
	n.write("cg/cgroup.controllers", "cpuset cpu")
	n.write("cg/cgroup.procs", "")
	n.write("proc/self/mountinfo", fmt.Sprintf("30 25 0:26 / %s/cg rw,nosuid - cgroup2 cgroup2 rw\n", n.dir))
	n.link("proc/self/ns/cgroup", "cgroup:[4026531835]")
	return n
}

func (n *node) write(name, text string) {
	name = filepath.Join(n.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) link(name, target string) {
	name = filepath.Join(n.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(target, name)); err != nil {
		n.t.Fatal(err)
	}
}

// group adds a cgroup with the given processes.
func (n *node) group(path, procs string) { n.write("cg"+path+"/cgroup.procs", procs) }

func (n *node) open() (*cgroup.Host, Options) {
	h, err := cgroup.Open(filepath.Join(n.dir, "proc"))
	if err != nil {
		n.t.Fatal(err)
	}
	return h, Options{VarLog: filepath.Join(n.dir, "log"), Runtimes: runtimes.New(runtimes.Options{
		Proc: filepath.Join(n.dir, "proc"), DockerDir: filepath.Join(n.dir, "docker")})}
}

func kubernetesNode(t *testing.T) *node {
	n := newNode(t)
	pod := "/kubepods.slice/kubepods-pod" + uidU + ".slice"
	n.group(pod+"/cri-containerd-"+idA+".scope/nested", "7\n")
	n.group(pod+"/cri-containerd-"+idB+".scope", "8\n")
	n.group("/system.slice/docker-"+strings.Repeat("c", 64)+".scope", "9\n")
	n.group("/system.slice/nginx.service/worker", "10\n")
	n.group("/user.slice/user-0.slice/user@0.service/init.scope", "11\n")
	n.group("/mine/leaf \xff\n\x1b[31m", "12\n")
	n.write("log/pods/shop_cart-0_"+uid+"/app/0.log", "")
	n.write("log/pods/junk/x", "")
	n.write("log/containers/cart-0_shop_app-"+idA+".log", "")
	n.write("docker/containers/"+strings.Repeat("c", 64)+"/config.v2.json", `{"Name":"/web","Config":{"Labels":{"a":"b"}}}`)
	return n
}

func TestList(t *testing.T) {
	h, o := kubernetesNode(t).open()
	got, err := List(h, o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got {
		names = append(names, fmt.Sprintf("%s|%s|%s|%s", c.Name, c.Runtime, c.Namespace, c.ContainerName))
	}
	want := []string{
		"shop/cart-0/app|containerd|shop|app",
		"shop/cart-0/fedcba987654|containerd|shop|",
		`/mine/leaf \xff\n\x1b[31m|||`,
		"web|docker||web",
		"nginx.service|systemd||",
		"init.scope|systemd||",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	if got[0].Group.Path != "/kubepods.slice/kubepods-pod"+uidU+".slice/cri-containerd-"+idA+".scope" {
		t.Errorf("path %q is not the topmost cgroup", got[0].Group.Path)
	}
}

// A scope inside a container or unit has lines, too: its leaves.
func TestListInsideAContainer(t *testing.T) {
	n := kubernetesNode(t)
	inside := "/kubepods.slice/kubepods-pod" + uidU + ".slice/cri-containerd-" + idA + ".scope/nested"
	n.group(inside+"/a", "7\n")
	n.group(inside+"/b", "17\n")
	for scope, want := range map[string][]string{
		inside:                               {inside + "/a", inside + "/b"},
		inside + "/a":                        {inside + "/a"},
		"/system.slice/nginx.service/worker": {"/system.slice/nginx.service/worker"},
		"/system.slice/nginx.service":        {"/system.slice/nginx.service"},
	} {
		h, o := n.open()
		o.Scope = scope
		containers, err := List(h, o)
		var got []string
		for _, c := range containers {
			got = append(got, c.Group.Path)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("below %s: %q, %v, want %q", scope, got, err, want)
		}
	}
}

func TestResolve(t *testing.T) {
	n := kubernetesNode(t)
	n.write("proc/7/cgroup", "0::/kubepods.slice/kubepods-pod"+uidU+".slice/cri-containerd-"+idA+".scope/nested\n")
	h, o := n.open()
	containers, err := List(h, o)
	if err != nil {
		t.Fatal(err)
	}
	pod := "/kubepods.slice/kubepods-pod" + uidU + ".slice"
	const app = "shop/cart-0/app"
	for target, name := range map[string]string{
		"cart-0/app": app, "app": app, "cart-0": app, "shop/cart-0": app,
		"shop/cart-0/app": app, uid: app, idA: app, "0123": app, "fe": "shop/cart-0/fedcba987654",
		"containerd:cart-0": app, "kubernetes:shop/cart-0/app": app, "containerd:0123": app, "docker:web": "web", "docker:cc": "web",
		"web": "web", "ccc": "web", "nginx": "nginx.service", "nginx.service": "nginx.service", "pid:7": app,
		containers[0].Group.Path: app, containers[0].Group.Path + "/nested": containers[0].Group.Path + "/nested",
		pod: pod, n.dir + "/cg" + pod: pod, pod[1:]: pod,
		text.EscapePath("/mine/leaf \xff\n\x1b[31m"): `/mine/leaf \xff\n\x1b[31m`,
		"/mine/leaf \xff\n\x1b[31m":                  `/mine/leaf \xff\n\x1b[31m`,
		"leaf \xff\n\x1b[31m":                        `/mine/leaf \xff\n\x1b[31m`, // its last component
	} {
		if got, err := Resolve(h, containers, target); err != nil || got.Name != name {
			t.Errorf("%q: %q, %v; want %q", target, got.Name, err, name)
		}
	}
	for target, near := range map[string]string{"ngimx": "nginx.service", "cart": app, "weeb": "web",
		"docker:cart-0": "", "docker:weeb": "web", "podman:web": "", "docker:": "", "zzzzzzzzz": "", "pid:999": "",
		"pid:0": "", "pid:-1": "", "": ""} {
		_, err := Resolve(h, containers, target)
		var e *NotFound
		if !errors.As(err, &e) || near != "" && (len(e.Near) == 0 || e.Near[0] != near) || len(e.Near) > 5 {
			t.Errorf("%q: %v, want near %q", target, err, near)
		}
	}
	var ambiguous *Ambiguous
	if _, err := Resolve(h, append(containers, containers[0]), "app"); !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != 2 {
		t.Errorf("ambiguous: %v", err)
	}
}

func TestResolvePIDInPrivateNamespace(t *testing.T) {
	n := newNode(t)
	if err := os.Remove(filepath.Join(n.dir, "proc/self/ns/cgroup")); err != nil {
		t.Fatal(err)
	}
	n.link("proc/self/ns/cgroup", "cgroup:[4026532999]")
	h, _ := n.open()
	var e *NotMeasurable
	if _, err := Resolve(h, nil, "pid:1"); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}
