package container

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// waited adds a container of ctr: a shim, a process of the container in this cgroup, and the bundle.
func (n *node) waited(pid int, cgroup, id, at string) {
	n.group(at, fmt.Sprintln(pid))
	shim := fmt.Sprintf("proc/%d", pid+1)
	n.write(fmt.Sprintf("proc/%d/stat", pid), fmt.Sprintf("%d (sh) S %d 1", pid, pid+1))
	n.write(shim+"/stat", fmt.Sprintf("%d (containerd-shim) S 1 1", pid+1))
	n.write(shim+"/cmdline", "containerd-shim-runc-v2\x00-namespace\x00default\x00-id\x00"+id+"\x00")
	n.link(shim+"/cwd", n.dir+"/tasks/"+id)
	n.write("tasks/"+id+"/config.json", fmt.Sprintf(`{"linux":{"cgroupsPath":%q}}`, cgroup))
}

// Cgroups whose paths tell nothing are containers where a runtime's process says so, and one line each.
func TestContainersWithoutAMark(t *testing.T) {
	n := newNode(t)
	n.waited(100, "/default/batch", "batch", "/default/batch/inner/a")
	n.group("/default/batch/inner/b", "100\n")
	n.waited(200, "/elsewhere", "web", "/plain") // its bundle names another cgroup
	n.group("/empty", "")
	h, o := n.open()
	l := NewLister(h, o)
	for range 2 {
		containers, err := l.List()
		var got []string
		for _, c := range containers {
			got = append(got, c.Group.Path+" "+c.Runtime+" "+c.Name+" "+c.ContainerName)
		}
		if want := []string{"/default/batch containerd batch batch", "/empty  /empty ",
			"/plain  /plain "}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v\n got %q\nwant %q", err, got, want)
		}
	}
	// A process that comes late.
	n.waited(300, "/empty", "late", "/empty")
	containers, err := l.List()
	if err != nil || len(containers) != 3 || containers[1].Name != "late" {
		t.Errorf("%+v, %v", containers, err)
	}
	if got, err := Resolve(h, containers, "containerd:batch"); err != nil || got.Group.Path != "/default/batch" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Two containers of one compose service: the service fits both, each name its own.
func TestComposeServices(t *testing.T) {
	n := newNode(t)
	for i, id := range []string{idA, idB} {
		n.group("/docker/"+id, "5\n")
		n.write("docker/containers/"+id+"/config.v2.json", fmt.Sprintf(`{"Name":"/shop-cart-%d","Config":{"Labels":{
			"com.docker.compose.project":"shop","com.docker.compose.service":"cart"}}}`, i+1))
	}
	h, o := n.open()
	containers, err := List(h, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"cart", "shop/cart", "docker:cart"} {
		if _, err := Resolve(h, containers, target); err == nil || len(err.(*Ambiguous).Candidates) != 2 ||
			!strings.HasPrefix(err.(*Ambiguous).Candidates[0], "docker:shop-cart-1 (/docker/") {
			t.Errorf("%s: %v", target, err)
		}
		if got, err := Resolve(h, containers[:1], target); err != nil || got.Name != "shop-cart-1" {
			t.Errorf("%s: %+v, %v", target, got, err)
		}
	}
	if got, err := Resolve(h, containers, "docker:shop-cart-2"); err != nil || got.ID != idB {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDescribe(t *testing.T) {
	for want, c := range map[string]Container{
		"docker container, image cart:2, service shop/cart": {ID: idA, Runtime: Docker, Image: "cart:2", Project: "shop", Service: "cart"},
		"containerd container, QoS Burstable, image cart:2": {ID: idA, Runtime: Containerd, QoS: Burstable, Image: "cart:2"},
		"podman container, service post":                    {ID: idA, Runtime: Podman, Service: "post"},
		"":                                                  {Runtime: Systemd, Unit: "a.service"},
	} {
		if got := c.Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
