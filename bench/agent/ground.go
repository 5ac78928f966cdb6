package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// namePrefix starts the name of every cgroup that a benchmark makes; the pid of the process that made it follows.
const namePrefix = "unthrottle-bench-"

// quota of each cgroup: the least that the kernel takes, so that little work stops it.
var quota = cgroup.Limit{Quota: cgroup.MinQuota, Period: cgroup.DefaultPeriod}

// ground is the cgroups that the benchmark owns.
type ground struct {
	host  *cgroup.Host
	top   string
	dir   string   // for files, removed as well
	extra []string // mount points of other v1 hierarchies in which real containers are, too
}

func newGround() (*ground, error) {
	h, err := cgroup.Open("/proc")
	if err != nil {
		return nil, err
	}
	g := &ground{host: h, top: cgroup.Join(h.Top(cgroup.CPU), namePrefix+strconv.Itoa(os.Getpid()))}
	if v, _ := h.Version(cgroup.CPU); v == cgroup.V1 {
		g.extra = mountsOf("memory", "pids")
	}
	g.removeLeftovers()
	if g.dir, err = os.MkdirTemp("", namePrefix); err != nil {
		return nil, err
	}
	if err := g.add(g.top); err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// hierarchies are the controllers, one per tree.
func (g *ground) hierarchies() []cgroup.Controller {
	var own []cgroup.Controller
	for _, c := range cgroup.Controllers() {
		_, mounted := g.host.Mount(c)
		shared := slices.ContainsFunc(own, func(o cgroup.Controller) bool { return g.host.SameHierarchy(o, c) })
		if mounted && !shared {
			own = append(own, c)
		}
	}
	return own
}

// add makes a cgroup in every hierarchy; on v1 its cpuset gets the parent's CPUs and memory nodes.
func (g *ground) add(path string) error {
	for _, c := range g.hierarchies() {
		if err := g.host.Make(c, path); err != nil {
			return err
		}
		v, _ := g.host.Version(c)
		if v == cgroup.V2 && path == g.top {
			_ = g.host.Write(c, path, cgroup.FileSubtreeControl, "+memory +pids") // as far as they are there
			if err := g.host.Write(c, path, cgroup.FileSubtreeControl, "+cpu +cpuset"); err != nil {
				return err
			}
		}
		if v == cgroup.V2 || c != cgroup.CPUSet {
			continue
		}
		for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
			value, err := g.host.Read(c, cgroup.Parent(path), file)
			if err == nil {
				err = g.host.Write(c, path, file, value)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, mount := range g.extra {
		if err := os.Mkdir(mount+path, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (g *ground) path(i int) string { return fmt.Sprintf("%s/c%04d", g.top, i) }

// prepare makes n cgroups with a quota.
func (g *ground) prepare(n int) error {
	v, _ := g.host.Version(cgroup.CPU)
	for i := range n {
		if err := g.add(g.path(i)); err != nil {
			return err
		}
		for _, w := range cgroup.LimitWrites(v, cgroup.Unlimited(), quota) {
			if err := g.host.Write(cgroup.CPU, g.path(i), w.File, w.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear removes the cgroups of one scenario and waits for processes to be gone.
func (g *ground) clear() error {
	var all error
	for _, c := range g.hierarchies() {
		children, err := g.host.Children(c, g.top)
		all = errors.Join(all, err)
		for _, path := range children {
			all = errors.Join(all, g.removeOne(c, path))
		}
	}
	for _, mount := range g.extra {
		names, _ := filepath.Glob(mount + g.top + "/c*")
		for _, name := range names {
			all = errors.Join(all, patiently(func() error { return os.Remove(name) }))
		}
	}
	return all
}

func (g *ground) removeOne(c cgroup.Controller, path string) error {
	return patiently(func() error { return g.host.Remove(c, path) })
}

// patiently removes what processes may still be leaving.
func patiently(remove func() error) error {
	var err error
	for range 200 {
		if err = remove(); err == nil || errors.Is(err, cgroup.ErrNoCgroup) || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// remove removes everything.
func (g *ground) remove() {
	err := g.clear()
	if g.dir != "" {
		err = errors.Join(err, os.RemoveAll(g.dir))
	}
	for _, c := range g.hierarchies() {
		err = errors.Join(err, g.removeOne(c, g.top))
	}
	for _, mount := range g.extra {
		err = errors.Join(err, patiently(func() error { return os.Remove(mount + g.top) }))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: not removed:", err)
	}
}

// removeLeftovers removes what benchmarks that are dead by now have left.
func (g *ground) removeLeftovers() {
	for _, c := range g.hierarchies() {
		children, _ := g.host.Children(c, g.host.Top(c))
		for _, path := range children {
			pid, err := strconv.Atoi(strings.TrimPrefix(cgroup.Base(path), namePrefix))
			if !strings.HasPrefix(cgroup.Base(path), namePrefix) || err != nil || syscall.Kill(pid, 0) == nil {
				continue
			}
			old := &ground{host: g.host, top: path, extra: g.extra}
			old.remove()
		}
	}
}

// mountsOf finds where v1 controllers are mounted, as far as they are (proc_pid_mountinfo(5)).
func mountsOf(controllers ...string) []string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(rest) < 3 || rest[0] != "cgroup" || fields[3] != "/" {
			continue
		}
		for _, option := range strings.Split(rest[2], ",") {
			if slices.Contains(controllers, option) && !slices.Contains(found, fields[4]) {
				found = append(found, fields[4])
			}
		}
	}
	return found
}

// occupy puts one sleeping process into each cgroup, as a container without one would soon be none.
func (g *ground) occupy(n int, life time.Duration) ([]*child, error) {
	var sleepers []*child
	for i := range n {
		c, err := start("sleeper", "sleep", strconv.Itoa(int(life.Seconds())))
		if err != nil {
			return sleepers, err
		}
		sleepers = append(sleepers, c)
		for _, controller := range g.hierarchies() {
			if err := g.host.Attach(controller, g.path(i), c.cmd.Process.Pid); err != nil {
				return sleepers, err
			}
		}
		for _, mount := range g.extra {
			if err := os.WriteFile(mount+g.path(i)+"/cgroup.procs", []byte(strconv.Itoa(c.cmd.Process.Pid)), 0); err != nil {
				return sleepers, err
			}
		}
	}
	return sleepers, nil
}
