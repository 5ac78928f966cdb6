package cgroupmodel

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"
)

// Config describes the kernel to model. The zero value of a version means that the controller is not mounted.
type Config struct {
	CPU, CPUSet, CPUAcct cgroup.Version
	// Together puts the v1 controllers into one hierarchy, as "cpu,cpuacct" often is.
	Together bool
	// CPUs are the online CPUs, Mems the memory nodes.
	CPUs, Mems cpuset.CPUSet
	// NoBurst leaves out the burst files (kernels before 5.14), NoStatLocal cpu.stat.local (before 6.6).
	// NoIdle leaves out cpu.idle (before 5.15).
	NoBurst, NoStatLocal, NoIdle bool
	// ClearsPopulated lets a v2 cpuset.cpus be cleared while tasks are inside. Kernels before 7.0 refuse that with
	// ENOSPC, as v1 does.
	ClearsPopulated bool
}

// V1 returns a configuration with cpu, cpuset and cpuacct as three hierarchies.
func V1(cpus string) Config {
	return Config{CPU: cgroup.V1, CPUSet: cgroup.V1, CPUAcct: cgroup.V1, CPUs: mustParse(cpus), Mems: cpuset.New(0)}
}

// V2 returns a configuration with all controllers on the unified hierarchy.
func V2(cpus string) Config {
	return Config{CPU: cgroup.V2, CPUSet: cgroup.V2, CPUAcct: cgroup.V2, CPUs: mustParse(cpus), Mems: cpuset.New(0)}
}

func mustParse(cpus string) cpuset.CPUSet {
	set, err := cpuset.Parse(cpus)
	if err != nil {
		panic(fmt.Sprintf("cgroupmodel: %q is not a CPU list: %v", cpus, err))
	}
	return set
}

// Op is one operation that is about to happen.
type Op struct {
	// Kind is one of the cgroup.Op constants.
	Kind       string
	Controller cgroup.Controller
	Path       string
	// File and Value of a read, write or attach (Value: the pid).
	File, Value string
}

// Changes reports whether the operation may change anything.
func (o Op) Changes() bool {
	switch o.Kind {
	case cgroup.OpWrite, cgroup.OpMake, cgroup.OpRemove, cgroup.OpAttach:
		return true
	}
	return false
}

// String formats the operation for messages of tests.
func (o Op) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", o.Kind, o.Controller, o.Path, o.File, o.Value))
}

// Kernel is an in-memory model of the kernel's cgroup rules. It implements cgroup.FS.
type Kernel struct {
	// Before, if set, is called before every operation, without any lock held. It may change the model itself, as
	// another process would. Its error stops the operation and is returned unchanged.
	Before func(Op) error

	mu     sync.Mutex
	config Config
	trees  map[cgroup.Controller]*tree
	procs  map[int]*process
	nextID uint64
}

// tree is one hierarchy.
type tree struct {
	version     cgroup.Version
	controllers []cgroup.Controller
	root        *group
}

// group is one cgroup of one hierarchy. cpu and set are nil where the controller is not enabled (v2) or lies in another
// hierarchy (v1).
type group struct {
	path     string
	id       uint64
	parent   *group
	children map[string]*group
	cpu      *bandwidth
	set      *cpus
	clone    bool                       // v1: cgroup.clone_children
	subtree  map[cgroup.Controller]bool // v2: cgroup.subtree_control
	threaded bool                       // v2: cgroup.type
	pinned   map[string]string          // file contents that a test has set
}

// process is one process with all its threads; a foreign one is outside our PID namespace and reads as 0.
type process struct {
	threads []int
	foreign bool
	at      map[*tree]*group
}

// New makes a kernel with root cgroups only.
func New(config Config) *Kernel {
	k := &Kernel{config: config, trees: map[cgroup.Controller]*tree{}, procs: map[int]*process{}, nextID: 1}
	versions := map[cgroup.Controller]cgroup.Version{
		cgroup.CPU: config.CPU, cgroup.CPUSet: config.CPUSet, cgroup.CPUAcct: config.CPUAcct,
	}
	shared := map[cgroup.Version]*tree{}
	for _, c := range cgroup.Controllers() {
		v := versions[c]
		if v == 0 {
			continue
		}
		t := shared[v]
		if t == nil || v == cgroup.V1 && !config.Together {
			t = &tree{version: v}
			shared[v] = t
		}
		if v == cgroup.V1 || c != cgroup.CPUAcct {
			t.controllers = append(t.controllers, c)
		}
		k.trees[c] = t
	}
	for _, t := range k.allTrees() {
		t.root = k.newGroup("/", nil)
		for _, c := range t.controllers {
			k.enable(t, t.root, c)
		}
		if t.root.set != nil {
			t.root.set.configured, t.root.set.mems = config.CPUs, config.Mems
			t.root.set.exclusive = true
		}
	}
	return k
}

func (k *Kernel) allTrees() []*tree {
	var all []*tree
	for _, c := range cgroup.Controllers() {
		if t := k.trees[c]; t != nil && !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

func (k *Kernel) newGroup(path string, parent *group) *group {
	g := &group{path: path, id: k.nextID, parent: parent, children: map[string]*group{},
		subtree: map[cgroup.Controller]bool{}, pinned: map[string]string{}}
	k.nextID++
	return g
}

// enable gives a cgroup a controller's files, with default values.
func (k *Kernel) enable(t *tree, g *group, c cgroup.Controller) {
	switch c {
	case cgroup.CPU:
		g.cpu = newBandwidth(t.version)
	case cgroup.CPUSet:
		g.set = &cpus{balance: true}
	}
}

func (g *group) disable(c cgroup.Controller) {
	switch c {
	case cgroup.CPU:
		g.cpu = nil
	case cgroup.CPUSet:
		g.set = nil
	}
}

// find walks to a group; nil if it does not exist.
func (t *tree) find(path string) *group {
	g := t.root
	if path == "/" {
		return g
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if g = g.children[part]; g == nil {
			return nil
		}
	}
	return g
}

// lookup finds a group, or returns the error that FS defines for a missing one.
func (k *Kernel) lookup(c cgroup.Controller, path string) (*tree, *group, error) {
	t := k.trees[c]
	if t == nil {
		return nil, nil, cgroup.ErrNoController
	}
	if err := cgroup.CheckPath(path); err != nil {
		return t, nil, err
	}
	g := t.find(path)
	if g == nil {
		return t, nil, errGone
	}
	return t, g, nil
}

// kinded is an errno together with its kind.
type kinded struct {
	errno unix.Errno
	kind  error
}

func (e kinded) Error() string { return e.kind.Error() }

var (
	errGone   = kinded{unix.ENOENT, cgroup.ErrNoCgroup}
	errNoFile = kinded{unix.ENOENT, cgroup.ErrNoFile}
)

// before calls the test's hook.
func (k *Kernel) before(op Op) error {
	if k.Before == nil {
		return nil
	}
	return k.Before(op)
}

// fail makes the *cgroup.Error that the real one would make; the model must not be locked.
func (k *Kernel) fail(op Op, cause error) error {
	e := cgroup.Error{Op: op.Kind, Path: op.Path, File: op.File, Value: op.Value}
	switch cause := cause.(type) {
	case kinded:
		e.Errno, e.Kind = cause.errno, cause.kind
	case unix.Errno:
		e.Errno = cause
	default:
		e.Kind = cause
	}
	if op.Kind == cgroup.OpAttach {
		e.File = ""
	}
	return cgroup.NewError(quiet{k}, op.Controller, e)
}

// descend visits g and all below it, parents first, siblings sorted.
func descend(g *group, fn func(*group)) {
	fn(g)
	for _, name := range sortedKeys(g.children) {
		descend(g.children[name], fn)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
