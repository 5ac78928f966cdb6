package cgroupmodel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"golang.org/x/sys/unix"
)

var _ cgroup.FS = (*Kernel)(nil)

// quiet is the kernel without the Before hook; error messages look causes up through it.
type quiet struct{ *Kernel }

// Version implements cgroup.FS.
func (k *Kernel) Version(c cgroup.Controller) (cgroup.Version, bool) {
	t := k.trees[c]
	if t == nil {
		return 0, false
	}
	return t.version, true
}

// Read implements cgroup.FS.
func (k *Kernel) Read(c cgroup.Controller, path, file string) (string, error) {
	if err := k.before(Op{Kind: cgroup.OpRead, Controller: c, Path: path, File: file}); err != nil {
		return "", err
	}
	return quiet{k}.Read(c, path, file)
}

func (q quiet) Read(c cgroup.Controller, path, file string) (string, error) {
	text, err := q.read(c, path, file)
	if err != nil {
		return "", q.fail(Op{Kind: cgroup.OpRead, Controller: c, Path: path, File: file}, err)
	}
	return text, nil
}

func (k *Kernel) read(c cgroup.Controller, path, file string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, g, err := k.lookup(c, path)
	if err != nil {
		return "", err
	}
	return k.content(t, g, file)
}

// Write implements cgroup.FS.
func (k *Kernel) Write(c cgroup.Controller, path, file, value string) error {
	op := Op{Kind: cgroup.OpWrite, Controller: c, Path: path, File: file, Value: value}
	if err := k.before(op); err != nil {
		return err
	}
	data, err := cgroup.WriteBytes(file, value)
	if err == nil {
		err = k.write(c, path, file, strings.TrimSpace(data))
	}
	if err != nil {
		return k.fail(op, err)
	}
	return nil
}

func (k *Kernel) write(c cgroup.Controller, path, file, value string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, g, err := k.lookup(c, path)
	if err != nil {
		return err
	}
	return k.store(t, g, file, value)
}

// Make implements cgroup.FS.
func (k *Kernel) Make(c cgroup.Controller, path string) error {
	op := Op{Kind: cgroup.OpMake, Controller: c, Path: path}
	if err := k.before(op); err != nil {
		return err
	}
	if err := k.mkdir(c, path); err != nil {
		return k.fail(op, err)
	}
	return nil
}

func (k *Kernel) mkdir(c cgroup.Controller, path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, parent, err := k.lookup(c, cgroup.Parent(path))
	if err != nil {
		return err
	}
	if err := cgroup.CheckPath(path); err != nil {
		return err
	}
	name := cgroup.Base(path)
	switch {
	case path == "/" || parent.children[name] != nil || k.hasFile(t, parent, name):
		return unix.EEXIST
	case strings.Contains(name, "\n"):
		return unix.EINVAL
	}
	g := k.newGroup(path, parent)
	g.clone = parent.clone
	for _, c := range t.controllers {
		if t.version == cgroup.V1 || parent.subtree[c] {
			k.enable(t, g, c)
		}
	}
	if g.set != nil && parent.clone && t.version == cgroup.V1 {
		g.cloneFrom(parent)
	}
	parent.children[name] = g
	return nil
}

// Remove implements cgroup.FS.
func (k *Kernel) Remove(c cgroup.Controller, path string) error {
	op := Op{Kind: cgroup.OpRemove, Controller: c, Path: path}
	if err := k.before(op); err != nil {
		return err
	}
	if err := k.rmdir(c, path); err != nil {
		return k.fail(op, err)
	}
	return nil
}

func (k *Kernel) rmdir(c cgroup.Controller, path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, g, err := k.lookup(c, path)
	if err != nil {
		return err
	}
	if g.parent == nil || len(g.children) > 0 || k.populated(t, g, false) {
		return unix.EBUSY
	}
	delete(g.parent.children, cgroup.Base(path))
	return nil
}

// Children implements cgroup.FS.
func (k *Kernel) Children(c cgroup.Controller, path string) ([]string, error) {
	if err := k.before(Op{Kind: cgroup.OpChildren, Controller: c, Path: path}); err != nil {
		return nil, err
	}
	return quiet{k}.Children(c, path)
}

func (q quiet) Children(c cgroup.Controller, path string) ([]string, error) {
	q.mu.Lock()
	_, g, err := q.lookup(c, path)
	var all []string
	if err == nil {
		for _, name := range sortedKeys(g.children) {
			all = append(all, g.children[name].path)
		}
	}
	q.mu.Unlock()
	if err != nil {
		return nil, q.fail(Op{Kind: cgroup.OpChildren, Controller: c, Path: path}, err)
	}
	return all, nil
}

// Procs implements cgroup.FS.
func (k *Kernel) Procs(c cgroup.Controller, path string) ([]int, error) {
	return k.pids(c, path, cgroup.FileProcs)
}

// Threads implements cgroup.FS.
func (k *Kernel) Threads(c cgroup.Controller, path string) ([]int, error) {
	v, _ := k.Version(c)
	return k.pids(c, path, cgroup.ThreadsFile(v))
}

func (k *Kernel) pids(c cgroup.Controller, path, file string) ([]int, error) {
	text, err := k.Read(c, path, file)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return []int{}, nil
	}
	return cgroup.ParsePids(text + "\n")
}

// Attach implements cgroup.FS.
func (k *Kernel) Attach(c cgroup.Controller, path string, pid int) error {
	op := Op{Kind: cgroup.OpAttach, Controller: c, Path: path, File: cgroup.FileProcs, Value: strconv.Itoa(pid)}
	if err := k.before(op); err != nil {
		return err
	}
	if pid <= 0 {
		return k.fail(op, cgroup.ErrBadPID)
	}
	if err := k.move(c, path, pid); err != nil {
		return k.fail(op, err)
	}
	return nil
}

func (k *Kernel) move(c cgroup.Controller, path string, pid int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, g, err := k.lookup(c, path)
	if err != nil {
		return err
	}
	p := k.procs[pid]
	if p == nil || p.foreign {
		return unix.ESRCH
	}
	if err := k.mayHold(t, g); err != nil {
		return err
	}
	p.at[t] = g
	return nil
}

// mayHold returns why processes may not be moved into g, nil if they may.
func (k *Kernel) mayHold(t *tree, g *group) error {
	if t.version == cgroup.V2 {
		if err := k.vetDestination(t, g); err != nil {
			return err
		}
	}
	if g.set != nil && (k.effective(t, g).IsEmpty() || k.effectiveMems(t, g).IsEmpty()) {
		return unix.ENOSPC
	}
	return nil
}

// ID implements cgroup.FS.
func (k *Kernel) ID(c cgroup.Controller, path string) (uint64, error) {
	if err := k.before(Op{Kind: cgroup.OpID, Controller: c, Path: path}); err != nil {
		return 0, err
	}
	return quiet{k}.ID(c, path)
}

func (q quiet) ID(c cgroup.Controller, path string) (uint64, error) {
	q.mu.Lock()
	_, g, err := q.lookup(c, path)
	q.mu.Unlock()
	if err != nil {
		return 0, q.fail(Op{Kind: cgroup.OpID, Controller: c, Path: path}, err)
	}
	return g.id, nil
}

// hasFile reports whether a control file of this name is in a cgroup.
func (k *Kernel) hasFile(t *tree, g *group, name string) bool {
	return slices.Contains(k.files(t, g), name)
}
