package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// site is where the demo may make its cgroups: the scope in every hierarchy,
// and the hierarchies, each named by one controller of it.
type site struct {
	scope       cgroup.Group
	hierarchies []cgroup.Controller
}

// findSite finds the scope's cgroup in each hierarchy.
func findSite(h *cgroup.Host, scope string) (site, error) {
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		if _, ok := h.Version(c); !ok {
			return site{}, &NotMeasurable{
				What:   fmt.Sprintf("no cgroup hierarchy with the %s controller is mounted", c),
				WayOut: "'unthrottle check' shows what there is",
			}
		}
	}
	var s site
	for _, c := range cgroup.Controllers() {
		_, mounted := h.Version(c)
		same := func(other cgroup.Controller) bool { return h.SameHierarchy(c, other) }
		if mounted && !slices.ContainsFunc(s.hierarchies, same) {
			s.hierarchies = append(s.hierarchies, c)
		}
	}
	if scope == h.Top(cgroup.CPU) {
		// The tops belong together, whatever the members of one say.
		s.scope = cgroup.Group{Path: scope, CPUSetPath: h.Top(cgroup.CPUSet)}
		if _, ok := h.Version(cgroup.CPUAcct); ok {
			s.scope.CPUAcctPath = h.Top(cgroup.CPUAcct)
		}
		return s, nil
	}
	var err error
	if s.scope, err = h.Group(scope); err != nil {
		return s, fmt.Errorf("demo: --scope: make the cgroup first, or leave --scope out: %w", err)
	}
	return s, nil
}

// in is a group's path in the hierarchy of c.
func in(g cgroup.Group, c cgroup.Controller) string {
	switch c {
	case cgroup.CPUSet:
		return g.CPUSetPath
	case cgroup.CPUAcct:
		return g.CPUAcctPath
	}
	return g.Path
}

// child is the group of that name below the scope.
func (s site) child(name string) cgroup.Group {
	g := cgroup.Group{Path: cgroup.Join(s.scope.Path, name), CPUSetPath: cgroup.Join(s.scope.CPUSetPath, name)}
	if s.scope.CPUAcctPath != "" {
		g.CPUAcctPath = cgroup.Join(s.scope.CPUAcctPath, name)
	}
	return g
}

// handsOn checks that on v2 the scope gives its children both controllers.
func (s site) handsOn(fsys cgroup.FS) error {
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		if v, _ := fsys.Version(c); v != cgroup.V2 {
			continue
		}
		scope := in(s.scope, c)
		enabled, err := cgroup.SubtreeControl(fsys, scope)
		if err != nil {
			return &NotMeasurable{What: "cgroup v2", WayOut: "run as root", Err: err}
		}
		if !slices.Contains(enabled, c) {
			return &NotMeasurable{
				What: fmt.Sprintf("cgroup %s: cgroup.subtree_control lacks %s, and that file is not the demo's to change",
					text.EscapePath(scope), c),
				WayOut: fmt.Sprintf("write +%s to it yourself, or name with --scope a cgroup that hands cpu and cpuset to its children", c),
			}
		}
	}
	return nil
}

// home is the demo's own cgroup, of the same name in each hierarchy.
type home struct {
	fs    cgroup.FS
	made  []cgroup.Controller // where it was made
	group cgroup.Group
	limit cgroup.Limit // in force
}

// makeHome makes the cgroups. On failure, what was made is still in the
// returned home, to be removed.
func makeHome(fsys cgroup.FS, s site, name string, cpus, mems cpuset.CPUSet) (*home, error) {
	h := &home{fs: fsys, limit: cgroup.Unlimited(), group: s.child(name)}
	for _, c := range s.hierarchies {
		if err := fsys.Make(c, in(h.group, c)); err != nil {
			return h, &NotMeasurable{What: "cannot make a cgroup of its own", WayOut: wayOut(err), Err: err}
		}
		h.made = append(h.made, c)
	}
	// A new v1 cpuset holds no task until it has memory nodes and CPUs.
	if v, _ := fsys.Version(cgroup.CPUSet); v == cgroup.V1 {
		if err := fsys.Write(cgroup.CPUSet, h.group.CPUSetPath, cgroup.FileMems, mems.String()); err != nil {
			return h, err
		}
	}
	var err error
	if h.limit, err = cgroup.ReadLimit(fsys, h.group.Path); err != nil {
		return h, err
	}
	return h, h.setCPUs(cpus)
}

func wayOut(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "run as root"
	case errors.Is(err, unix.EROFS):
		return "cgroups are mounted read-only here: run on the host, or in a container that may write them"
	}
	return "'unthrottle check' shows what this host offers; --scope names another place"
}

// setHighestWeight makes others' load count as little as the kernel allows.
func (h *home) setHighestWeight() error {
	v, _ := h.fs.Version(cgroup.CPU)
	w := cgroup.SharesWrite(v, cgroup.MaxShares)
	return h.fs.Write(cgroup.CPU, h.group.Path, w.File, w.Value)
}

// setLimit puts a limit in force; it is a free refill of the quota, too
// (tg_set_cfs_bandwidth), which wipes what an earlier arm owed.
func (h *home) setLimit(want cgroup.Limit) error {
	v, _ := h.fs.Version(cgroup.CPU)
	for _, w := range cgroup.LimitWrites(v, h.limit, want) {
		if err := h.fs.Write(cgroup.CPU, h.group.Path, w.File, w.Value); err != nil {
			return err
		}
	}
	h.limit = want
	return nil
}

func (h *home) setCPUs(cpus cpuset.CPUSet) error {
	_, err := cgroup.WriteCPUs(h.fs, h.group.CPUSetPath, cpus)
	return err
}

// attach moves a child in, in all hierarchies.
func (h *home) attach(pid int) error {
	for _, c := range h.made {
		if err := h.fs.Attach(c, in(h.group, c), pid); err != nil {
			return err
		}
	}
	return nil
}

// remove removes all that was made, also after failures, and looks that it is
// gone.
func (h *home) remove() error {
	var failed []error
	for _, c := range slices.Backward(h.made) {
		path := in(h.group, c)
		err := removeWhenEmpty(h.fs, c, path, 5*time.Second)
		if err == nil && cgroup.Exists(h.fs, c, path) {
			err = fmt.Errorf("cgroup %s: still there after its removal", text.EscapePath(path))
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// removeWhenEmpty removes a cgroup, waiting for tasks that are on their way
// out: a thread leaves its cgroup a moment after its process was reaped.
func removeWhenEmpty(fsys cgroup.FS, c cgroup.Controller, path string, patience time.Duration) error {
	const pause = 20 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		err := fsys.Remove(c, path)
		switch {
		case err == nil || errors.Is(err, cgroup.ErrNoCgroup):
			return nil
		case !errors.Is(err, unix.EBUSY) || waited >= patience:
			return err
		}
		time.Sleep(pause)
	}
}
