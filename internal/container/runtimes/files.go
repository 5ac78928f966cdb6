package runtimes

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container/names"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// Bounds of files, which hold strangers' texts, and of ancestors.
const (
	maxFile      = 8 << 20
	maxAncestors = 64
)

// fromFiles reads the runtime's files: those that the container's monitor leads to, then the usual ones.
func (h *Host) fromFiles(q Query) names.Names {
	if !names.IsPlain(q.ID) || q.ID == "." || q.ID == ".." {
		return names.Names{}
	}
	if q.PID != nil {
		if pid, ok := q.PID(); ok {
			if m, ok := h.monitor(pid); ok {
				if found := h.monitored(m, q.ID).Names; found.Known() {
					return found
				}
			}
		}
	}
	switch q.Runtime {
	case names.Podman, names.CRIO:
		for _, file := range h.o.StorageFiles {
			if found, ok := stored(file, q.ID); ok {
				found.Runtime = q.Runtime
				return found
			}
		}
	default:
		if h.o.DockerDir != "" && q.Runtime != names.Containerd {
			if found, ok := dockerConfig(filepath.Join(h.o.DockerDir, "containers", q.ID)); ok {
				return found
			}
		}
		for _, dir := range h.o.TaskDirs {
			for _, namespace := range []string{"k8s.io", "default"} {
				if b, ok := bundle(filepath.Join(dir, namespace, q.ID), q.ID); ok {
					b.Runtime = names.Containerd
					return b.Names
				}
			}
		}
	}
	return names.Names{}
}

// monitor is a process that waits for a container.
type monitor struct {
	names.Monitor
	pid int
	// foreign says that it belongs to another user than root and us. Its folders are that user's, who may make reading
	// them take forever; only its command line is read.
	foreign bool
}

// monitor finds the farthest ancestor of a process that is a monitor.
func (h *Host) monitor(pid int) (found monitor, ok bool) {
	for range maxAncestors {
		stat, err := h.proc(pid, "stat")
		if err != nil {
			break
		}
		if comm := procfs.Command(stat); names.IsMonitor(comm) {
			if commandLine, err := h.proc(pid, "cmdline"); err == nil {
				if m, is := names.ParseMonitor(comm, commandLine); is {
					found, ok = monitor{m, pid, h.foreign(pid)}, true
				}
			}
		}
		parent, err := procfs.Parent(stat)
		if err != nil || parent <= 1 {
			break
		}
		pid = int(parent)
	}
	return found, ok
}

func (h *Host) foreign(pid int) bool {
	info, err := os.Stat(filepath.Join(h.o.Proc, strconv.Itoa(pid)))
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

// monitored reads the bundle of a container that a monitor waits for, and the files that it leads to. Paths go through
// the monitor's own working folder and root: what they are there needs not be visible to us under the same name.
func (h *Host) monitored(m monitor, id string) names.Bundle {
	dir := filepath.Join(h.o.Proc, strconv.Itoa(m.pid))
	if !m.Shim {
		if m.ID != id {
			return names.Bundle{}
		}
		if m.foreign {
			return names.Bundle{Names: names.Names{Name: m.Name}}
		}
		return conmon(m.Monitor, dir+"/root")
	}
	if m.foreign {
		return names.Bundle{}
	}
	at := dir + "/cwd"
	if m.ID != id {
		at += "/../" + id // not cleaned: .. is the parent of the link's target
	}
	b, ok := bundle(at, id)
	if !ok {
		return names.Bundle{}
	}
	b.Runtime = m.Runtime
	if m.Runtime == names.Docker && b.DockerDir != "" {
		if found, ok := dockerConfig(dir + "/root" + b.DockerDir); ok {
			b.Names = found
		}
	} else if !names.IsID(id) && b.Name == "" {
		b.Name = id // ctr's ids are names
	}
	return b
}

// conmon reads what conmon's command line leads to, below root.
func conmon(m names.Monitor, root string) names.Bundle {
	var b names.Bundle
	if m.Bundle != "" {
		b, _ = bundle(root+m.Bundle, m.ID)
		// The folder of the storage driver has containers.json and, per container, ID/userdata.
		if near, ok := stored(root+filepath.Dir(filepath.Dir(m.Bundle))+"/containers.json", m.ID); ok && b.Image == "" {
			b.Image = near.Image
		}
	}
	b.Name = m.Name
	return b
}

func bundle(dir, id string) (names.Bundle, bool) {
	data, err := readFile(dir + "/config.json")
	if err != nil {
		return names.Bundle{}, false
	}
	b, err := names.ParseBundle(data, id)
	return b, err == nil
}

func dockerConfig(dir string) (names.Names, bool) {
	data, err := readFile(dir + "/config.v2.json")
	if err != nil {
		return names.Names{}, false
	}
	found, err := names.DockerConfig(data)
	return found, err == nil
}

func stored(file, id string) (names.Names, bool) {
	data, err := readFile(file)
	if err != nil {
		return names.Names{}, false
	}
	all, err := names.Storage(data)
	found, ok := all[id]
	return found, ok && err == nil
}

// proc reads a file of a process.
func (h *Host) proc(pid int, file string) (string, error) {
	data, err := readFile(filepath.Join(h.o.Proc, strconv.Itoa(pid), file))
	return string(data), err
}

// readFile reads a regular file of at most maxFile bytes. It never waits for the writer of a pipe.
func readFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: more than %d bytes", name, maxFile)
	}
	return data, err
}
