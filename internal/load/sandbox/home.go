package sandbox

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

// MaxGroups bounds the cgroups of one home.
const MaxGroups = 256

// Options of Open.
type Options struct {
	Host *cgroup.Host
	// Prefix of the home's name, such as "unthrottle-bench-".
	Prefix string
	// Scope is the cgroup, in the cpu hierarchy, below which the home is made; "":
	// the highest that can be seen.
	Scope string
	// Fair leaves the home at the ordinary weight.
	Fair bool
}

// Home is a run's own cgroup and what it made in it.
type Home struct {
	host        *cgroup.Host
	hierarchies []cgroup.Controller // one name for each
	top         cgroup.Group
	cpus, mems  cpuset.CPUSet
	made        []cgroup.Group // top first
	// Notes are on leftovers of killed runs: those that were removed and those
	// that could not be.
	Notes []string
}

// NotMeasurable says that this host, or this user, cannot have cgroups of its
// own: what is missing and what to do. Nothing was left behind.
type NotMeasurable struct {
	What   string
	WayOut string
	Err    error // the kernel's answer, or nil
}

func (e *NotMeasurable) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v; %s", e.What, e.Err, e.WayOut)
	}
	return e.What + "; " + e.WayOut
}

// Unwrap gives the kernel's answer.
func (e *NotMeasurable) Unwrap() error { return e.Err }

// Open removes what killed runs left behind and makes a home.
func Open(o Options) (*Home, error) {
	h := &Home{host: o.Host}
	scope, err := h.find(o.Scope)
	if err != nil {
		return nil, err
	}
	self, err := ourselves("/proc")
	if err != nil {
		return nil, err
	}
	removed, notes := h.removeLeftovers(o.Prefix, scope, self.pidNS)
	h.Notes = append(h.Notes, notes...)
	if removed > 0 {
		h.Notes = append(h.Notes, fmt.Sprintf("the cgroups of %d killed runs were removed", removed))
	}
	if h.cpus, h.mems, err = usable(o.Host, scope); err != nil {
		return nil, err
	}
	h.top, err = h.make(scope, self.name(o.Prefix))
	if err == nil {
		err = h.handOn(h.top)
	}
	if err == nil && !o.Fair {
		err = h.weigh(h.top, cgroup.MaxShares)
	}
	if err != nil {
		return nil, errors.Join(err, h.Remove())
	}
	return h, nil
}

// find finds the scope in each hierarchy, and the hierarchies.
func (h *Home) find(scope string) (cgroup.Group, error) {
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		if _, ok := h.host.Version(c); !ok {
			return cgroup.Group{}, &NotMeasurable{What: fmt.Sprintf("no cgroup hierarchy with the %s controller is mounted", c), WayOut: "'unthrottle check' shows what there is"}
		}
	}
	for _, c := range cgroup.Controllers() {
		_, mounted := h.host.Version(c)
		if mounted && !slices.ContainsFunc(h.hierarchies, func(other cgroup.Controller) bool { return h.host.SameHierarchy(c, other) }) {
			h.hierarchies = append(h.hierarchies, c)
		}
	}
	if top := h.host.Top(cgroup.CPU); scope == "" || scope == top {
		g := cgroup.Group{Path: top, CPUSetPath: h.host.Top(cgroup.CPUSet)}
		if _, ok := h.host.Version(cgroup.CPUAcct); ok {
			g.CPUAcctPath = h.host.Top(cgroup.CPUAcct)
		}
		return g, nil
	}
	g, err := h.host.Group(scope)
	if err != nil {
		return g, fmt.Errorf("--scope: make the cgroup first, or leave --scope out: %w", err)
	}
	return g, nil
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

func below(g cgroup.Group, name string) cgroup.Group {
	b := cgroup.Group{Path: cgroup.Join(g.Path, name), CPUSetPath: cgroup.Join(g.CPUSetPath, name)}
	if g.CPUAcctPath != "" {
		b.CPUAcctPath = cgroup.Join(g.CPUAcctPath, name)
	}
	return b
}

// Usable are the CPUs that a home below the scope can use ("": below the highest
// cgroup that can be seen).
func Usable(host *cgroup.Host, scope string) (cpuset.CPUSet, error) {
	h := &Home{host: host}
	at, err := h.find(scope)
	if err != nil {
		return cpuset.New(), err
	}
	cpus, _, err := usable(host, at)
	return cpus, err
}

// usable are the CPUs and memory nodes of the scope, but no CPU that a v1
// sibling claims as exclusive.
func usable(host *cgroup.Host, scope cgroup.Group) (cpus, mems cpuset.CPUSet, err error) {
	if _, cpus, err = cgroup.CPUs(host, scope.CPUSetPath); err != nil {
		return cpus, mems, err
	}
	if _, mems, err = cgroup.Mems(host, scope.CPUSetPath); err != nil {
		return cpus, mems, err
	}
	if v, _ := host.Version(cgroup.CPUSet); v != cgroup.V1 {
		return cpus, mems, nil
	}
	siblings, err := host.Children(cgroup.CPUSet, scope.CPUSetPath)
	for _, path := range siblings {
		// A sibling that has gone meanwhile claims nothing.
		if state, err := cgroup.ReadCPUSet(host, path); err == nil && state.Exclusive {
			cpus = cpus.Difference(state.Configured)
		}
	}
	return cpus, mems, err
}

// make makes a cgroup in every hierarchy.
func (h *Home) make(parent cgroup.Group, name string) (cgroup.Group, error) {
	g := below(parent, name)
	if len(h.made) >= MaxGroups {
		return g, fmt.Errorf("more than %d cgroups", MaxGroups)
	}
	if err := h.handedOn(parent); err != nil {
		return g, err
	}
	h.made = append(h.made, g)
	for _, c := range h.hierarchies {
		if err := h.host.Make(c, in(g, c)); err != nil {
			return g, &NotMeasurable{What: "cannot make a cgroup of its own", WayOut: wayOut(err), Err: err}
		}
	}
	// A new v1 cpuset holds no task until it has memory nodes and CPUs.
	if v, _ := h.host.Version(cgroup.CPUSet); v == cgroup.V1 {
		if err := h.host.Write(cgroup.CPUSet, g.CPUSetPath, cgroup.FileMems, h.mems.String()); err != nil {
			return g, err
		}
	}
	_, err := cgroup.WriteCPUs(h.host, g.CPUSetPath, h.cpus)
	return g, err
}

// handedOn checks that on v2 a cgroup gives its children both controllers.
func (h *Home) handedOn(parent cgroup.Group) error {
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		if v, _ := h.host.Version(c); v != cgroup.V2 {
			continue
		}
		enabled, err := cgroup.SubtreeControl(h.host, in(parent, c))
		if err != nil {
			return &NotMeasurable{What: "cgroup v2", WayOut: "run as root", Err: err}
		}
		if !slices.Contains(enabled, c) {
			return &NotMeasurable{
				What:   fmt.Sprintf("cgroup %s: cgroup.subtree_control lacks %s, and that file is not ours to change", text.EscapePath(in(parent, c)), c),
				WayOut: fmt.Sprintf("write +%s to it yourself, or name with --scope a cgroup that hands cpu and cpuset to its children", c),
			}
		}
	}
	return nil
}

// handOn gives children of our own both controllers on v2.
func (h *Home) handOn(g cgroup.Group) error {
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		if v, _ := h.host.Version(c); v != cgroup.V2 {
			continue
		}
		if err := h.host.Write(c, in(g, c), cgroup.FileSubtreeControl, "+"+string(c)); err != nil {
			return err
		}
	}
	return nil
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

func (h *Home) weigh(g cgroup.Group, shares uint64) error {
	v, _ := h.host.Version(cgroup.CPU)
	w := cgroup.SharesWrite(v, shares)
	return h.host.Write(cgroup.CPU, g.Path, w.File, w.Value)
}

// CPUs that the home may use.
func (h *Home) CPUs() cpuset.CPUSet { return h.cpus }

// Levels are the limits that hold for the home from above.
func (h *Home) Levels() ([]cgroup.Level, error) { return cgroup.Levels(h.host, h.top.Path) }

// Remove removes all that was made, also after failures. Who is inside must have
// been ended; those on their way out are waited for.
func (h *Home) Remove() error {
	var failed []error
	for _, g := range slices.Backward(h.made) {
		for _, c := range slices.Backward(h.hierarchies) {
			failed = append(failed, removeWhenEmpty(h.host, c, in(g, c), 5*time.Second))
		}
	}
	h.made = nil
	return errors.Join(failed...)
}

// removeWhenEmpty removes a cgroup, waiting for tasks on their way out: a thread
// leaves its cgroup a moment after its process was reaped.
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
