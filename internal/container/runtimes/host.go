package runtimes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/container/names"
)

// Bounds of what is kept and of how often the same is looked for.
const (
	maxKept  = names.MaxContainers
	maxTries = 3
)

// Options of New. An empty folder is not read.
type Options struct {
	// Proc is the proc file system, usually "/proc".
	Proc string
	// Sockets are asked in this order.
	Sockets []Socket
	// Timeout is the longest that one socket can cost.
	Timeout time.Duration
	// DockerDir is Docker's usual data folder.
	DockerDir string
	// TaskDirs hold containerd's bundles: a folder per namespace, in it a folder per id.
	TaskDirs []string
	// StorageFiles are containers.json of Podman and CRI-O.
	StorageFiles []string
	// Now is the clock.
	Now func() time.Time
}

// Socket is a unix socket that speaks Docker's API over HTTP.
type Socket struct {
	// Runtime is names.Docker or names.Podman.
	Runtime string
	// Path is that of the socket.
	Path string
}

// DefaultOptions returns the usual places. DOCKER_HOST and CONTAINER_HOST add a socket where they name one
// ("unix:///path"); XDG_RUNTIME_DIR adds the user's own.
func DefaultOptions(getenv func(string) string) Options {
	o := Options{
		Proc: "/proc", Timeout: time.Second, Now: time.Now, DockerDir: "/var/lib/docker",
		TaskDirs: []string{"/run/containerd/io.containerd.runtime.v2.task", "/run/k3s/containerd/io.containerd.runtime.v2.task"},
		StorageFiles: []string{"/var/lib/containers/storage/overlay-containers/containers.json",
			"/var/lib/containers/storage/vfs-containers/containers.json"},
	}
	add := func(runtime, path string) {
		if filepath.IsAbs(path) {
			o.Sockets = append(o.Sockets, Socket{runtime, path})
		}
	}
	user := getenv("XDG_RUNTIME_DIR")
	for _, s := range []struct{ runtime, env, usual, own string }{
		{names.Docker, "DOCKER_HOST", "/var/run/docker.sock", "docker.sock"},
		{names.Podman, "CONTAINER_HOST", "/run/podman/podman.sock", "podman/podman.sock"},
	} {
		if path, ok := strings.CutPrefix(getenv(s.env), "unix://"); ok {
			add(s.runtime, path)
		}
		add(s.runtime, s.usual)
		if user != "" {
			add(s.runtime, filepath.Join(user, s.own))
		}
	}
	return o
}

// Host knows the runtimes of a host. Several goroutines may use it.
type Host struct {
	o Options

	mu       sync.Mutex
	known    map[string]names.Names
	tried    map[string]int
	asked    map[Socket]*asked
	warnings []string
	sources  []*source
}

// source knows names without asking anything that may wait.
type source struct {
	names func(id string) (names.Names, bool)
}

// AddSource has a source asked for names before all others, until remove is called. It must answer at once.
func (h *Host) AddSource(ask func(id string) (names.Names, bool)) (remove func()) {
	s := &source{ask}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sources = append(h.sources, s)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.sources = slices.DeleteFunc(h.sources, func(other *source) bool { return other == s })
	}
}

// fromSources asks the sources.
func (h *Host) fromSources(id string) (names.Names, bool) {
	for _, s := range h.sources {
		if found, ok := s.names(id); ok && found.Known() {
			return found, true
		}
	}
	return names.Names{}, false
}

// New returns a host; it asks nothing yet.
func New(o Options) *Host {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Host{o: o, known: map[string]names.Names{}, tried: map[string]int{}, asked: map[Socket]*asked{}}
}

// ThisHost returns the one Host of this process with DefaultOptions, so that all lists of a process ask once.
var ThisHost = sync.OnceValue(func() *Host { return New(DefaultOptions(os.Getenv)) })

// Warnings returns what went wrong since the last call, each thing once. At most 16 are kept.
func (h *Host) Warnings() []string {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	warnings := h.warnings
	h.warnings = nil
	return warnings
}

func (h *Host) warn(text string) {
	if len(h.warnings) < 16 {
		h.warnings = append(h.warnings, text)
	}
}

// Query is one container to name.
type Query struct {
	// Runtime is what the cgroup's path tells: names.Docker and others, "" for unknown.
	Runtime string
	// ID is the runtime's id.
	ID string
	// PID returns a process of the container; false means there is none. It is called only if it matters.
	PID func() (int, bool)
}

// Names returns what the runtime calls a container. Settled means that asking again is of no use.
func (h *Host) Names(q Query) (found names.Names, settled bool) {
	if h == nil || q.ID == "" {
		return names.Names{}, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if found, ok := h.known[q.ID]; ok {
		return found, true
	}
	found, known := h.fromSources(q.ID)
	// A source may hear of a container later than its cgroup is seen.
	later := len(h.sources) > 0 && q.Runtime != names.Docker && q.Runtime != names.Podman
	if !known && h.tried[q.ID] >= maxTries {
		return names.Names{}, !later
	}
	var denied Socket
	if !known {
		found, denied = h.fromSockets(q)
	}
	if !found.Known() {
		found = h.fromFiles(q)
	}
	if found.Known() {
		if len(h.known) >= maxKept {
			clear(h.known)
		}
		h.known[q.ID] = found
		return found, true
	}
	if denied != (Socket{}) {
		h.deny(denied)
	}
	if len(h.tried) >= maxKept {
		clear(h.tried)
	}
	h.tried[q.ID]++
	return found, !later && h.tried[q.ID] >= maxTries
}
