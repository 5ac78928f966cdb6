package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Cgroups that the runtimes make in every hierarchy, and folders that they make wherever their data is.
var (
	madeCgroups = []string{"docker", "libpod_parent", strings.TrimPrefix(ownCgroup, "/"), strings.TrimPrefix(secondCgroup, "/"),
		"default", "k8s.io", "moby"}
	madeFolders = []string{"/run/docker", "/run/containerd", "/run/runc", "/run/libpod", "/run/containers", "/run/podman",
		"/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/var/lib/cni", "/run/netns", "/etc/docker", "/etc/cni",
		"/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/usr/libexec/kubernetes"}
)

// machine is which of these were there.
type machine struct{ there map[string]bool }

func look() machine {
	m := machine{there: map[string]bool{}}
	for _, dir := range watched() {
		if _, err := os.Lstat(dir); err == nil {
			m.there[dir] = true
		}
	}
	return m
}

// watched are the folders that are compared.
func watched() []string {
	all := slices.Clone(madeFolders)
	for _, name := range madeCgroups {
		for _, pattern := range []string{"/sys/fs/cgroup/*/", "/sys/fs/cgroup/"} {
			found, _ := filepath.Glob(pattern + name)
			all = append(all, found...)
		}
	}
	return all
}

// added are the folders that were not there. In one that was, other runtimes of this machine may work: it is left alone.
func (m machine) added() []string {
	var added []string
	for dir := range look().there {
		if !m.there[dir] {
			added = append(added, dir)
		}
	}
	slices.Sort(added)
	return added
}

// tidy removes what runtimes leave behind after the last container. A cgroup that a process just left needs a moment.
func (m machine) tidy() {
	for range 20 {
		added := m.added()
		if len(added) == 0 {
			return
		}
		for _, dir := range added {
			remove(dir)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// remove removes a tree. In a tree of cgroups only folders can be removed, and only empty ones.
func remove(dir string) {
	if !strings.HasPrefix(dir, "/sys/") {
		_ = os.RemoveAll(dir)
		return
	}
	var all []string
	_ = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			all = append(all, name)
		}
		return nil
	})
	for _, name := range slices.Backward(all) {
		_ = os.Remove(name)
	}
}

// sweep ends what a runtime that failed left running or mounted. Their command lines and mount points name our folder,
// which is unique.
func (s *suite) sweep() {
	for _, p := range s.processes() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	for _, dir := range slices.Backward(s.mounts()) {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	}
}

// nothingLeft compares the machine with what it was.
func (s *suite) nothingLeft(before machine) {
	var errs []error
	for _, name := range before.added() {
		errs = append(errs, errors.New(name))
	}
	s.check("left: no cgroup and no folder", errors.Join(errs...))
	var running []error
	for _, p := range s.processes() {
		running = append(running, fmt.Errorf("%d: %s", p.pid, p.command))
	}
	s.check("left: no process", errors.Join(running...))
	s.check("left: no mount", equal("mounts", strings.Join(s.mounts(), " "), ""))
}

type process struct {
	pid     int
	command string
}

// processes are those whose command line names our folder.
func (s *suite) processes() []process {
	var all []process
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range found {
		text, err := os.ReadFile(name)
		if pid, bad := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && bad == nil &&
			pid != os.Getpid() && strings.Contains(string(text), s.dir+"/") {
			all = append(all, process{pid, strings.ReplaceAll(string(text), "\x00", " ")})
		}
	}
	return all
}

// mounts are the mount points below our folder.
func (s *suite) mounts() []string {
	text, _ := os.ReadFile("/proc/self/mounts")
	var all []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], s.dir+"/") {
			all = append(all, fields[1])
		}
	}
	return all
}
