package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/cgroup"
)

// namePrefix starts the name of every cgroup that a benchmark makes; the pid of the process that made it follows.
const namePrefix = "unthrottle-bench-"

// quota of each cgroup: the least that the kernel takes, so that little work stops it.
var quota = cgroup.Limit{Quota: cgroup.MinQuota, Period: cgroup.DefaultPeriod}

// ground is the cgroups that the benchmark owns.
type ground struct {
	host *cgroup.Host
	top  string
	dir  string // for files, removed as well
}

func newGround() (*ground, error) {
	h, err := cgroup.Open("/proc")
	if err != nil {
		return nil, err
	}
	g := &ground{host: h, top: cgroup.Join(h.Top(cgroup.CPU), namePrefix+strconv.Itoa(os.Getpid()))}
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
			all = errors.Join(all, removeOne(g.host, c, path))
		}
	}
	return all
}

func removeOne(h *cgroup.Host, c cgroup.Controller, path string) error {
	var err error
	for range 200 {
		if err = h.Remove(c, path); err == nil || errors.Is(err, cgroup.ErrNoCgroup) {
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
		err = errors.Join(err, removeOne(g.host, c, g.top))
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
			old := &ground{host: g.host, top: path}
			old.remove()
		}
	}
}
