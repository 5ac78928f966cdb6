package container

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

func TestChoose(t *testing.T) {
	pod := "/kubepods/pod" + uid
	for _, c := range []struct {
		name, top string
		met, want []string
		working   string // a cgroup with its own processes
	}{
		{"plain leaves", "/", []string{"/a", "/a/b", "/a/c", "/d"}, []string{"/a/b", "/a/c", "/d"}, ""},
		{"a unit with cgroups of its own", "/",
			[]string{"/system.slice", "/system.slice/a.service", "/system.slice/a.service/x"}, []string{"/system.slice/a.service"}, ""},
		{"a unit that only groups", "/", []string{"/u", "/u/user@1.service", "/u/user@1.service/app.slice",
			"/u/user@1.service/app.slice/b.service"},
			[]string{"/u/user@1.service/app.slice/b.service"}, ""},
		{"a unit that groups and works", "/", []string{"/containerd.service", "/containerd.service/" + "kubepods-pod" +
			uidU + ".slice:cri-containerd:" + idA},
			[]string{"/containerd.service", "/containerd.service/kubepods-pod" + uidU + ".slice:cri-containerd:" + idA},
			"/containerd.service"},
		{"a pod's level is no line", "/", []string{"/kubepods", pod, pod + "/" + idA, pod + "/" + idB},
			[]string{pod + "/" + idA, pod + "/" + idB}, ""},
		{"what is above us is not ours", "/docker/" + idA,
			[]string{"/docker/" + idA + "/app", "/docker/" + idA + "/docker", "/docker/" + idA + "/docker/" + idB},
			[]string{"/docker/" + idA + "/app", "/docker/" + idA + "/docker/" + idB}, ""},
		{"nothing", "/", nil, []string{}, ""},
	} {
		var met []candidate
		for _, path := range c.met {
			found, known := recognise(relative(path, c.top))
			met = append(met, candidate{path: path, known: known, identity: found})
		}
		got := []string{}
		for _, chosen := range choose(met, c.top, func(path string) bool { return path == c.working }) {
			got = append(got, chosen.path)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// On v1 one container may have another path per controller.
func TestListSeparateHierarchies(t *testing.T) {
	dir := t.TempDir()
	n := &node{t, dir}
	info := ""
	for i, c := range []string{"cpu", "cpuset", "cpuacct"} {
		n.write(c+"/cgroup.procs", "")
		info += fmt.Sprintf("%d 25 0:%d / %s/%s rw - cgroup cgroup rw,%s\n", 30+i, 30+i, dir, c, c)
	}
	n.write("proc/self/mountinfo", info)
	scope := "/system.slice/docker-" + idA + ".scope"
	n.write("cpu"+scope+"/cgroup.procs", "41\n")
	n.write("cpuset/docker/"+idA+"/cgroup.procs", "41\n")
	n.write("cpuacct"+scope+"/cgroup.procs", "41\n")
	n.write("proc/41/cgroup", "3:cpuset:/docker/"+idA+"\n2:cpuacct:"+scope+"\n1:cpu:"+scope+"\n")
	h, o := n.open()
	got, err := List(h, o)
	want := cgroup.Group{Path: scope, CPUSetPath: "/docker/" + idA, CPUAcctPath: scope}
	if err != nil || len(got) != 1 || got[0].Group != want || got[0].Name != idA[:12] {
		t.Errorf("%+v, %v", got, err)
	}
}

// A Lister notices a cpuset cgroup that is made later.
func TestListerNoticesACpusetMadeLater(t *testing.T) {
	dir := t.TempDir()
	n := &node{t, dir}
	n.write("cpu/cgroup.procs", "")
	n.write("cpuset/cgroup.procs", "")
	n.write("proc/self/mountinfo", fmt.Sprintf("30 25 0:30 / %[1]s/cpu rw - cgroup cgroup rw,cpu\n31 25 0:31 / "+
		"%[1]s/cpuset rw - cgroup cgroup rw,cpuset\n", dir))
	n.write("cpu/a.service/cgroup.procs", "41\n")
	n.write("proc/41/cgroup", "2:cpuset:/\n1:cpu:/a.service\n")
	h, o := n.open()
	l := NewLister(h, o)
	for _, want := range []string{"/", "/a.service"} {
		containers, err := l.List()
		if err != nil || len(containers) != 1 || containers[0].Group.CPUSetPath != want {
			t.Fatalf("%+v, %v; want %s", containers, err, want)
		}
		n.write("cpuset/a.service/cgroup.procs", "41\n")
		n.write("proc/41/cgroup", "2:cpuset:/a.service\n1:cpu:/a.service\n")
	}
}

func TestScope(t *testing.T) {
	h, o := kubernetesNode(t).open()
	o.Scope = "/system.slice"
	got, err := List(h, o)
	if err != nil || len(got) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	o.Scope = "/gone"
	if got, err := List(h, o); err == nil {
		t.Errorf("a scope that is not there: %+v", got)
	}
}

// A Lister keeps its results for the same cgroup and looks names up until it has them. It notices another cgroup under
// the same path.
func TestListerRemembers(t *testing.T) {
	n := newNode(t)
	path := "/kubepods/pod" + uid + "/" + idA
	n.group(path, "5\n")
	h, o := n.open()
	l := NewLister(h, o)
	name := func() string {
		t.Helper()
		containers, err := l.List()
		if err != nil || len(containers) != 1 {
			t.Fatalf("%+v, %v", containers, err)
		}
		return containers[0].Name
	}
	if got := name(); got != idA[:12] {
		t.Errorf("without logs: %q", got)
	}
	n.write("log/pods/shop_cart-0_"+uid+"/app/0.log", "")
	if got := name(); got != "shop/cart-0/"+idA[:12] {
		t.Errorf("with the pod's logs: %q", got)
	}
	n.write("log/containers/cart-0_shop_app-"+idA+".log", "")
	if got := name(); got != "shop/cart-0/app" {
		t.Errorf("with the container's log: %q", got)
	}
	if err := os.RemoveAll(filepath.Join(n.dir, "log")); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "shop/cart-0/app" {
		t.Errorf("a name once known stays: %q", got)
	}
	// Another cgroup under the same path has another inode; the old one stays, so that its number is not reused.
	old := filepath.Join(n.dir, "cg"+path)
	if err := os.Rename(old, filepath.Join(n.dir, "kept")); err != nil {
		t.Fatal(err)
	}
	n.group(path, "6\n")
	if got := name(); got != idA[:12] {
		t.Errorf("a new cgroup must be looked at anew: %q", got)
	}
}

func TestDockerNamesAreData(t *testing.T) {
	n := newNode(t)
	n.group("/docker/"+idA, "5\n")
	n.group("/docker/"+idB, "6\n")
	n.write("docker/containers/"+idA+"/config.v2.json", `{"Name":"/`+strings.Repeat("x", 16<<20)+`"}`)
	n.write("docker/containers/"+idB+"/config.v2.json", `{"Name":"/evil\u001b[31m","Config":{"Image":"a\nb","Labels":{
		"io.kubernetes.pod.name":"spoofed","io.kubernetes.pod.namespace":"kube-system","io.kubernetes.container.name":"c"}}}`)
	h, o := n.open()
	containers, err := List(h, o)
	if err != nil || len(containers) != 2 {
		t.Fatalf("%+v, %v", containers, err)
	}
	if got := containers[1]; containers[0].Name != idA[:12] || got.Name != `evil\x1b[31m` || got.ContainerName != got.Name ||
		got.Image != `a\nb` || got.Pod != "" || got.Namespace != "" {
		t.Errorf("%+v", containers)
	}
}

func TestNearIsBounded(t *testing.T) {
	var containers []Container
	for i := range 1000 {
		containers = append(containers, Container{Name: fmt.Sprintf("web-%d", i)})
	}
	if got := near(containers, "web-1001"); len(got) != maxNear {
		t.Errorf("%d names", len(got))
	}
	if got := near(containers, strings.Repeat("z", 1<<20)); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
