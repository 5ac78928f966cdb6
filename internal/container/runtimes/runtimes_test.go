package runtimes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container/names"
)

var (
	idA = strings.Repeat("0123456789abcdef", 4)
	idB = strings.Repeat("fedcba9876543210", 4)
)

// daemon serves answer at a socket and counts the questions.
func daemon(t *testing.T, serve http.HandlerFunc) (Socket, *atomic.Int32) {
	dir, err := os.MkdirTemp("", "s") // a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "d.sock"))
	if err != nil {
		t.Fatal(err)
	}
	count := new(atomic.Int32)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		if r.Method != http.MethodGet || r.URL.Path != "/containers/json" {
			t.Errorf("%s %s: only the list is to be asked for", r.Method, r.URL)
		}
		serve(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return Socket{names.Docker, listener.Addr().String()}, count
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// clock is a time that the test moves.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func TestSocketIsAskedOnceForAll(t *testing.T) {
	s, count := daemon(t, says(`[{"Id":"`+idA+`","Names":["/web"],"Image":"nginx:1"},{"Id":"`+idB+`","Names":["/db"]}]`))
	c := &clock{time.Unix(1, 0)}
	h := New(Options{Sockets: []Socket{s}, Timeout: time.Minute, Now: c.now})
	for range 2 {
		for id, want := range map[string]string{idA: "web", idB: "db"} {
			if got, settled := h.Names(Query{Runtime: names.Docker, ID: id}); got.Name != want || !settled || got.Runtime != names.Docker {
				t.Errorf("%+v %v, want %s", got, settled, want)
			}
		}
		c.Time = c.Add(time.Hour)
	}
	if count.Load() != 1 {
		t.Errorf("asked %d times", count.Load())
	}
	if got, _ := h.Names(Query{Runtime: names.Podman, ID: strings.Repeat("a", 64)}); got.Known() || count.Load() != 1 {
		t.Errorf("Docker was asked for Podman's container: %+v", got)
	}
	// An id that nothing knows is looked for three times, and never more than once a second.
	unknown := Query{Runtime: names.Docker, ID: strings.Repeat("b", 64)}
	for i := range 6 {
		if _, settled := h.Names(unknown); settled != (i >= maxTries-1) {
			t.Errorf("try %d: settled %v", i, settled)
		}
		c.Time = c.Add(time.Hour)
	}
	if count.Load() != 1+maxTries {
		t.Errorf("asked %d times", count.Load())
	}
	if w := h.Warnings(); len(w) != 0 {
		t.Errorf("warnings %q", w)
	}
}

// A socket that hangs or lies costs one attempt, is told once, and the files still tell.
func TestSocketsThatHangOrLie(t *testing.T) {
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		warns string
	}{
		"hangs": {func(http.ResponseWriter, *http.Request) { <-hold }, "did not answer"},
		"begins and hangs": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "[")
			w.(http.Flusher).Flush()
			<-hold
		}, "did not answer"},
		"no JSON":  {says("<html>\x1b[31m"), "no answer that can be used (not a list"},
		"an error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "\x1b[31m", 500) }, "HTTP status 500"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://else/", http.StatusFound)
		}, "HTTP status 302"},
		"endless": {says(strings.Repeat(" ", maxAnswer+2)), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, count := daemon(t, c.serve)
			dir := t.TempDir()
			write(t, filepath.Join(dir, "containers", idA, "config.v2.json"), `{"Name":"/web"}`)
			now := &clock{time.Unix(1, 0)}
			timeout := time.Minute
			if c.warns == "did not answer" {
				timeout = 3 * time.Second // long enough for a busy host to begin with the question
			}
			h := New(Options{Sockets: []Socket{s}, Timeout: timeout, Now: now.now, DockerDir: dir})
			for range 3 {
				if got, settled := h.Names(Query{Runtime: names.Docker, ID: idA}); got.Name != "web" || !settled {
					t.Errorf("%+v %v", got, settled)
				}
				if got, _ := h.Names(Query{Runtime: names.Docker, ID: idB}); got.Known() {
					t.Errorf("%+v", got)
				}
				now.Time = now.Add(time.Minute)
			}
			if count.Load() != 1 {
				t.Errorf("asked %d times", count.Load())
			}
			if w := h.Warnings(); len(w) != 1 || !strings.Contains(w[0], c.warns) || strings.Contains(w[0], "\x1b") {
				t.Errorf("warnings %q", w)
			}
			if w := h.Warnings(); len(w) != 0 {
				t.Errorf("told twice: %q", w)
			}
		})
	}
}

// No socket, one that nothing listens at, and a file in its place: no warning, since a runtime need not run.
func TestSocketsThatAreNotServed(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Timeout: time.Minute}
	for _, name := range []string{"none", "file", "pipe"} {
		o.Sockets = append(o.Sockets, Socket{names.Docker, filepath.Join(dir, name)})
	}
	h := New(o)
	if got, _ := h.Names(Query{Runtime: names.Docker, ID: idA}); got.Known() || len(h.Warnings()) != 0 {
		t.Errorf("%+v", got)
	}
}

// host is a fake proc with processes.
type host struct {
	t   *testing.T
	dir string
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func (h host) process(pid, parent int, comm string, arguments ...string) {
	dir := filepath.Join(h.dir, "proc", fmt.Sprint(pid))
	write(h.t, filepath.Join(dir, "stat"), fmt.Sprintf("%d (%s) S %d 1 1 0", pid, comm, parent))
	write(h.t, filepath.Join(dir, "cmdline"), strings.Join(arguments, "\x00")+"\x00")
	if err := os.Symlink(h.dir, filepath.Join(dir, "root")); err != nil {
		h.t.Fatal(err)
	}
}

func (h host) folder(pid int, dir string) {
	if err := os.Symlink(filepath.Join(h.dir, dir), filepath.Join(h.dir, "proc", fmt.Sprint(pid), "cwd")); err != nil {
		h.t.Fatal(err)
	}
}

func (h host) json(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		h.t.Fatal(err)
	}
	write(h.t, filepath.Join(h.dir, name), string(data))
}

type object = map[string]any

// newHost has a container of each kind, all in folders that are not the usual ones.
func newHost(t *testing.T) (host, *Host) {
	h := host{t, t.TempDir()}
	// Docker: 11 is the container's, 10 its shim.
	h.process(10, 1, "containerd-shim", "containerd-shim-runc-v2", "-namespace", "moby", "-id", idA)
	h.folder(10, "tasks/moby/"+idA)
	h.process(11, 10, "sh")
	h.json("tasks/moby/"+idA+"/config.json", object{"linux": object{"cgroupsPath": "/mine/" + idA},
		"mounts": []object{{"destination": "/etc/hostname", "source": "/srv/containers/" + idA + "/hostname"}}})
	h.json("srv/containers/"+idA+"/config.v2.json", object{"Name": "/web", "Config": object{"Image": "nginx:1"}})
	// A pod: 20 is the shim of the sandbox idA, 21 a process of the container idB beside it.
	h.process(20, 1, "containerd-shim", "containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", idA)
	h.folder(20, "tasks/k8s.io/"+idA)
	h.process(21, 20, "sh")
	cri := func(name string) object {
		return object{"io.kubernetes.cri.sandbox-name": "cart-0", "io.kubernetes.cri.sandbox-namespace": "shop",
			"io.kubernetes.cri.container-name": name}
	}
	h.json("tasks/k8s.io/"+idA+"/config.json", object{"annotations": cri(""), "linux": object{"cgroupsPath": "/pods/" + idA}})
	h.json("tasks/k8s.io/"+idB+"/config.json", object{"annotations": cri("app"), "linux": object{"cgroupsPath": "/pods/" + idB}})
	// ctr: 31 is a child of a child.
	h.process(30, 1, "containerd-shim", "containerd-shim-runc-v2", "-namespace", "default", "-id", "batch")
	h.folder(30, "tasks/default/batch")
	h.process(32, 30, "a) S 1 (b")
	h.process(31, 32, "sh")
	h.json("tasks/default/batch/config.json", object{"linux": object{"cgroupsPath": "/default/batch"}})
	// Podman.
	h.process(40, 1, "conmon", "conmon", "-c", idA, "-b", "/storage/vfs-containers/"+idA+"/userdata", "-n", "db")
	h.process(41, 40, "postgres")
	h.json("storage/vfs-containers/containers.json",
		[]object{{"id": idA, "names": []string{"db"}, "metadata": `{"image-name":"postgres:15"}`}})
	h.json("storage/vfs-containers/"+idA+"/userdata/config.json", object{"annotations": object{"io.container.manager": "libpod"}})
	return h, New(Options{Proc: filepath.Join(h.dir, "proc")})
}

func query(runtime, id string, pid int) Query {
	return Query{Runtime: runtime, ID: id, PID: func() (int, bool) { return pid, pid > 0 }}
}

func TestFilesWhereverTheyAre(t *testing.T) {
	for _, c := range []struct {
		q    Query
		want names.Names
	}{
		{query(names.Docker, idA, 11), names.Names{Runtime: names.Docker, Name: "web", Image: "nginx:1"}},
		{query("kubernetes", idB, 21), names.Names{Runtime: names.Containerd, Namespace: "shop", Pod: "cart-0",
			PodContainer: "app", CRI: true}},
		{query(names.Podman, idA, 41), names.Names{Runtime: names.Podman, Name: "db", Image: "postgres:15"}},
		{query(names.Docker, idA, 1), names.Names{}},
		{query(names.Docker, idB, 11), names.Names{}},
		{query(names.Podman, idB, 41), names.Names{}},
		{query(names.Docker, "../moby/"+idA, 11), names.Names{}},
		{query(names.Docker, "..", 11), names.Names{}},
		{query(names.Docker, idA, 0), names.Names{}},
	} {
		_, h := newHost(t)
		if got, _ := h.Names(c.q); got != c.want {
			t.Errorf("%+v:\n got %+v\nwant %+v", c.q, got, c.want)
		}
	}
}

func TestOwner(t *testing.T) {
	_, h := newHost(t)
	for _, c := range []struct {
		path       string
		pid        int
		cgroup, id string
	}{
		{"/mine/" + idA, 11, "/mine/" + idA, idA},
		{"/mine/" + idA + "/inner/x", 11, "/mine/" + idA, idA},
		{"/default/batch", 31, "/default/batch", "batch"},
		{"/pods/" + idB, 21, "/pods/" + idB, idB},
		{"/pods/" + idA, 21, "/pods/" + idA, idA},
		{"/else", 31, "", ""},
		{"/", 31, "", ""},
		{"/default/batch", 1, "", ""},
		{"/default/batch", 999, "", ""},
	} {
		got, ok := h.Owner(c.path, c.pid)
		if ok != (c.id != "") || got.ID != c.id || got.Cgroup != c.cgroup {
			t.Errorf("%s %d: %+v %v", c.path, c.pid, got, ok)
		}
	}
	if got, _ := h.Owner("/default/batch", 31); got.Name != "batch" || got.Runtime != names.Containerd {
		t.Errorf("%+v", got)
	}
}

// A process in a container that calls itself a monitor does not count: the farthest ancestor does.
func TestMonitorsInContainersDoNotCount(t *testing.T) {
	fake, h := newHost(t)
	fake.process(12, 11, "conmon", "conmon", "-c", idA, "-n", "kube-apiserver")
	fake.process(13, 12, "sh")
	if got, _ := h.Names(query(names.Docker, idA, 13)); got.Name != "web" {
		t.Errorf("%+v", got)
	}
}

// Ancestors in a ring, endless files and pipes end.
func TestHostileFiles(t *testing.T) {
	fake, h := newHost(t)
	fake.process(50, 51, "sh")
	fake.process(51, 50, "sh")
	fake.process(60, 1, "containerd-shim", "containerd-shim-runc-v2", "-id", idB)
	fake.folder(60, "pipe")
	fake.process(61, 60, "sh")
	if err := os.Mkdir(filepath.Join(fake.dir, "pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(fake.dir, "pipe", "config.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{50, 61} {
		if got, _ := h.Names(query(names.Containerd, idB, pid)); got.Known() {
			t.Errorf("%d: %+v", pid, got)
		}
	}
}

// The folders of another user's monitor are not read: reading them may take forever.
func TestForeignMonitors(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes files of other users")
	}
	fake, h := newHost(t)
	for _, pid := range []string{"10", "40"} {
		if err := os.Chown(filepath.Join(fake.dir, "proc", pid), 4711, 4711); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := h.Names(query(names.Docker, idA, 11)); got != (names.Names{}) {
		t.Errorf("%+v", got)
	}
	if got, _ := h.Names(query(names.Podman, idA, 41)); got != (names.Names{Name: "db"}) {
		t.Errorf("%+v", got)
	}
}

func TestDefaultSockets(t *testing.T) {
	o := DefaultOptions(func(name string) string {
		return map[string]string{"DOCKER_HOST": "tcp://10.0.0.1:2375", "CONTAINER_HOST": "unix:///tmp/p.sock",
			"XDG_RUNTIME_DIR": "/run/user/7"}[name]
	})
	want := []Socket{{names.Docker, "/var/run/docker.sock"}, {names.Docker, "/run/user/7/docker.sock"},
		{names.Podman, "/tmp/p.sock"}, {names.Podman, "/run/podman/podman.sock"}, {names.Podman, "/run/user/7/podman/podman.sock"}}
	if fmt.Sprint(o.Sockets) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", o.Sockets, want)
	}
}

func TestNoHost(t *testing.T) {
	var h *Host
	if got, settled := h.Names(query(names.Docker, idA, 1)); got.Known() || !settled || h.Warnings() != nil {
		t.Errorf("%+v %v", got, settled)
	}
	if _, ok := h.Owner("/a", 1); ok {
		t.Error("an owner of nothing")
	}
}

// TestSource: a source is asked first, also after the files had nothing, until it is removed.
func TestSource(t *testing.T) {
	h := New(Options{Proc: t.TempDir()})
	id := strings.Repeat("ef", 32)
	heard := false
	remove := h.AddSource(func(asked string) (names.Names, bool) {
		return names.Names{Namespace: "shop", Pod: "cart-0", PodContainer: "app"}, heard && asked == id
	})
	q := Query{Runtime: names.Containerd, ID: id, PID: func() (int, bool) { return 0, false }}
	for range maxTries + 1 {
		if found, settled := h.Names(q); found.Known() || settled {
			t.Fatalf("%+v, settled %v, before the source has heard of it", found, settled)
		}
	}
	heard = true
	if found, settled := h.Names(q); found.Pod != "cart-0" || !settled {
		t.Errorf("%+v, settled %v", found, settled)
	}
	remove()
	q.ID = strings.Repeat("01", 32)
	for range maxTries {
		h.Names(q)
	}
	if _, settled := h.Names(q); !settled {
		t.Error("it goes on asking without a source")
	}
}
