package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// maxGroups bounds the cgroups of one sandbox, in each hierarchy.
const maxGroups = 4096

// Options of [Open]. Host and Prefix must be set.
type Options struct {
	Host *cgroup.Host
	// FS makes, writes and removes the cgroups; nil: Host.
	FS cgroup.FS
	// Prefix of the sandbox's name, such as "unthrottle-bench-".
	Prefix string
	// Run is the part of the name that follows Prefix: up to 32 of a-z and 0-9.
	// "": a random one.
	Run string
	// Scope is the parent's path in the cpu hierarchy; "": the highest cgroup that
	// this process can see.
	Scope string
	// Fair leaves the sandbox at the default weight.
	Fair bool
	// Accounting makes the cgroups in the v1 hierarchies of memory and pids too,
	// where they are mounted. On v2 it enables both controllers for the groups.
	Accounting bool
	// Proc stands for /proc, which tells owners apart; "": /proc.
	Proc string
}

// Sandbox is the cgroup of one experiment, with the groups below it.
type Sandbox struct {
	places
	groups     int  // made, the sandbox included
	memoryPids bool // Options.Accounting
	top        cgroup.Group
	cpus, mems cpuset.CPUSet
	// Leftovers of killed runs, as Open found them.
	Leftovers Leftovers
}

// NotMeasurable means that this host, or this user, cannot have a sandbox. The
// error leaves no cgroup behind.
type NotMeasurable struct {
	What   string // such as "cgroup v2"
	WayOut string // such as "run as root"
	Err    error  // the kernel's answer, or nil
}

func (e *NotMeasurable) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v; %s", e.What, e.Err, e.WayOut)
	}
	return e.What + "; " + e.WayOut
}

// Unwrap returns the kernel's answer.
func (e *NotMeasurable) Unwrap() error { return e.Err }

// Open removes the leftovers of killed runs and makes a sandbox. An error of type
// [*NotMeasurable] means that this host or user cannot have one.
func Open(o Options) (*Sandbox, error) {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	places, err := findPlaces(o.Host, o.FS, o.Scope)
	if err != nil {
		return nil, err
	}
	self, err := ourselves(o.Proc, o.Run)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{places: places, memoryPids: o.Accounting}
	s.Leftovers = s.removeLeftovers(o.Proc, o.Prefix, self.pidNS)
	if !o.Accounting {
		s.accounting = nil
	}
	if s.cpus, s.mems, err = s.usable(); err != nil {
		return nil, err
	}
	if err := s.checkScope(); err != nil {
		return nil, err
	}
	s.top = below(s.scope, self.name(o.Prefix))
	if err = s.makeTop(o.Fair); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

func (s *Sandbox) makeTop(fair bool) error {
	if err := s.make(s.top); err != nil {
		return err
	}
	// A new v1 cpuset holds no task until it has memory nodes and CPUs.
	if v, _ := s.fs.Version(cgroup.CPUSet); v == cgroup.V1 {
		if err := s.fs.Write(cgroup.CPUSet, s.top.CPUSetPath, cgroup.FileMems, s.mems.String()); err != nil {
			return err
		}
		if _, err := cgroup.WriteCPUs(s.fs, s.top.CPUSetPath, s.cpus); err != nil {
			return err
		}
	}
	if fair {
		return nil
	}
	return s.Top().SetShares(cgroup.MaxShares)
}

// make makes a cgroup in every hierarchy.
func (s *Sandbox) make(g cgroup.Group) error {
	if s.groups++; s.groups > maxGroups {
		return fmt.Errorf("sandbox %s: more than %d cgroups", text.EscapePath(s.top.Path), maxGroups)
	}
	for _, h := range s.all() {
		if err := h.make(g); err != nil {
			return &NotMeasurable{What: "cannot make a cgroup of its own", WayOut: wayOut(err), Err: err}
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
	return "'unthrottle check' shows what this host offers; --parent names another place"
}

// Usable returns the CPUs that a sandbox below the scope can use. A scope of ""
// is the highest cgroup that this process can see.
func Usable(host *cgroup.Host, scope string) (cpuset.CPUSet, error) {
	p, err := findPlaces(host, nil, scope)
	if err != nil {
		return cpuset.New(), err
	}
	cpus, _, err := p.usable()
	return cpus, err
}

// usable returns the CPUs and memory nodes of the scope, without the CPUs that a v1
// sibling has as exclusive. On v2 the CPUs of partitions are not in the scope's
// effective list.
func (p *places) usable() (cpus, mems cpuset.CPUSet, err error) {
	if _, cpus, err = cgroup.CPUs(p.fs, p.scope.CPUSetPath); err != nil {
		return cpus, mems, err
	}
	if _, mems, err = cgroup.Mems(p.fs, p.scope.CPUSetPath); err != nil {
		return cpus, mems, err
	}
	if v, _ := p.fs.Version(cgroup.CPUSet); v != cgroup.V1 {
		return cpus, mems, nil
	}
	siblings, err := p.fs.Children(cgroup.CPUSet, p.scope.CPUSetPath)
	for _, path := range siblings {
		// A sibling that has gone meanwhile has no CPUs.
		if state, err := cgroup.ReadCPUSet(p.fs, path); err == nil && state.Exclusive {
			cpus = cpus.Difference(state.Configured)
		}
	}
	return cpus, mems, err
}

// Top returns the sandbox's own cgroup, the parent of all its groups.
func (s *Sandbox) Top() *Group { return &Group{sandbox: s, at: s.top} }

// At returns the group of that path in the cpu hierarchy, also one that another
// program made below the sandbox. It does not check that the cgroup exists.
func (s *Sandbox) At(path string) (*Group, error) {
	if !cgroup.Below(path, s.top.Path) {
		return nil, fmt.Errorf("cgroup %s: not below the sandbox %s", text.EscapePath(path), text.EscapePath(s.top.Path))
	}
	at := s.top
	for part := range strings.FieldsFuncSeq(strings.TrimPrefix(path, s.top.Path), func(r rune) bool { return r == '/' }) {
		at = below(at, part)
	}
	return &Group{sandbox: s, at: at}, nil
}

// Group makes a cgroup in the sandbox. On v2 the top can then have no process.
func (s *Sandbox) Group(name string) (*Group, error) { return s.Top().Group(name) }

// CPUs returns the CPUs that the sandbox may use.
func (s *Sandbox) CPUs() cpuset.CPUSet { return s.cpus }

// Levels returns the limits of the sandbox and of all cgroups above it.
func (s *Sandbox) Levels() ([]cgroup.Level, error) { return cgroup.Levels(s.fs, s.top.Path) }

// removePatience is how long Remove waits in all for tasks that are exiting.
const removePatience = 5 * time.Second

// Remove removes the sandbox and every cgroup below it, also after failures. End
// the processes inside first: Remove waits 5 s for those that are exiting.
func (s *Sandbox) Remove() error {
	var failed []error
	patience := removePatience
	for _, h := range s.all() {
		failed = append(failed, h.removeTree(h.path(s.top), &patience))
	}
	return errors.Join(failed...)
}

// validRun reports whether the run's part of a name is one.
func validRun(run string) bool {
	return run != "" && len(run) <= 32 && strings.Trim(run, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}
