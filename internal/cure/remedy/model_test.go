package remedy

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// tester is what *testing.T and *rapid.T share.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// host is a modelled machine: cgroups by the model of the kernel's rules,
// topology by a tree of files.
type host struct {
	t          tester
	k          *cgroupmodel.Kernel
	root       fstest.MapFS
	containers []container.Container
	state      string
	options    gather.Options
	v          cgroup.Version
	oneTree    bool
	noClear    bool // a populated cpuset cannot be emptied
	irq        irq.FS
}

func newHost(t tester, config cgroupmodel.Config, state string) *host {
	return &host{t: t, k: cgroupmodel.New(config), root: sysfs(config.CPUs), state: state, v: config.CPU,
		oneTree: config.CPUSet == cgroup.V2 || config.Together}
}

// sysfs is a machine of one socket, two threads per core, one NUMA node.
func sysfs(cpus cpuset.CPUSet) fstest.MapFS {
	list := cpus.String()
	files := fstest.MapFS{
		"sys/devices/system/cpu/present":        {Data: []byte(list + "\n")},
		"sys/devices/system/cpu/online":         {Data: []byte(list + "\n")},
		"sys/devices/system/node/node0/cpulist": {Data: []byte(list + "\n")},
	}
	for _, id := range cpus.List() {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", id)
		core := cpuset.New(id&^1, id|1).Intersection(cpus).String()
		files[dir+"core_cpus_list"] = &fstest.MapFile{Data: []byte(core + "\n")}
		files[dir+"package_cpus_list"] = &fstest.MapFile{Data: []byte(list + "\n")}
	}
	return files
}

// make makes a cgroup in both hierarchies. On v1 its cpuset is its parent's.
func (h *host) make(path string) {
	h.t.Helper()
	h.makeIn(cgroup.CPU, path)
	if !h.oneTree {
		h.makeIn(cgroup.CPUSet, path)
	}
	if h.v == cgroup.V1 {
		for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
			h.write(cgroup.CPUSet, path, file, h.read(cgroup.CPUSet, cgroup.Parent(path), file))
		}
	}
}

func (h *host) makeIn(c cgroup.Controller, path string) {
	h.t.Helper()
	if err := h.k.Make(c, path); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) write(c cgroup.Controller, path, file, value string) {
	h.t.Helper()
	if err := h.k.Write(c, path, file, value); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) read(c cgroup.Controller, path, file string) string {
	h.t.Helper()
	text, err := h.k.Read(c, path, file)
	if err != nil {
		h.t.Fatal(err)
	}
	return text
}

// hand enables cpu and cpuset for the children of a v2 cgroup.
func (h *host) hand(path string, controllers ...cgroup.Controller) {
	h.t.Helper()
	if h.v == cgroup.V1 {
		return
	}
	for _, c := range controllers {
		h.write(cgroup.CPU, path, cgroup.FileSubtreeControl, "+"+string(c))
	}
}

// limit sets a quota in CPUs, with the default period.
func (h *host) limit(path string, cpus float64) {
	h.t.Helper()
	cur, err := cgroup.ReadLimit(h.k, path)
	if err != nil {
		h.t.Fatal(err)
	}
	want := cur
	want.Quota = time.Duration(cpus * float64(cur.Period)).Round(time.Microsecond)
	for _, w := range cgroup.LimitWrites(h.v, cur, want, false) {
		h.write(cgroup.CPU, path, w.File, w.Value)
	}
}

func (h *host) shares(path string, shares uint64) {
	h.t.Helper()
	w := cgroup.SharesWrite(h.v, shares)
	h.write(cgroup.CPU, path, w.File, w.Value)
}

// run makes a cgroup a container with one process.
func (h *host) run(path string, pid int) container.Container {
	h.t.Helper()
	h.k.Spawn(path, pid)
	return h.contain(path)
}

func (h *host) contain(path string) container.Container {
	set := path
	for !cgroup.Exists(h.k, cgroup.CPUSet, set) {
		set = cgroup.Parent(set)
	}
	c := container.Container{Name: cgroup.Base(path), Group: cgroup.Group{Path: path, CPUSetPath: set, CPUAcctPath: path}}
	h.containers = append(h.containers, c)
	return c
}

func (h *host) env() apply.Env {
	return apply.Env{FS: h.k, StateDir: h.state, BootID: "boot", By: "test", Scope: h.options.Scope, IRQ: h.irq}
}

func (h *host) facts() hoststate.Facts {
	h.t.Helper()
	held, err := apply.Status(h.env())
	if err != nil {
		h.t.Fatal(err)
	}
	drift, err := apply.Drift(h.env())
	if err != nil {
		h.t.Fatal(err)
	}
	o := h.options
	o.Root, o.Held, o.Drift = h.root, held, drift
	f, err := gather.From(context.Background(), h.k, h.oneTree, h.containers, o)
	if err != nil {
		h.t.Fatal(err)
	}
	return f
}

func (h *host) apply(p Plan) apply.Result {
	h.t.Helper()
	r, err := apply.Apply(context.Background(), h.env(), p.Purpose(), p.Changes)
	if err != nil {
		h.t.Fatalf("apply %s: %v\n%+v", p.Remedy, err, p.Changes)
	}
	return r
}

// reconcile is what the transactions in force need by now.
func (h *host) reconcile() []Reconciliation {
	h.t.Helper()
	due, err := Reconcile(h.facts())
	if err != nil {
		h.t.Fatal(err)
	}
	return due
}

// revoke plans to revoke what the owner shares.
func (h *host) revoke(id string) Plan {
	h.t.Helper()
	plan, err := Revoke(h.facts(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return plan
}

// placement is the host as package placement sees it.
func (h *host) placement(f hoststate.Facts) placement.State {
	h.t.Helper()
	state, err := State(f, nil, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return state
}

func (h *host) restore(target string) apply.Result {
	h.t.Helper()
	r, err := apply.Restore(context.Background(), h.env(), apply.Selector{Target: target})
	if err != nil {
		h.t.Fatalf("restore %s: %v", target, err)
	}
	return r
}

// exclusive reports who else can run on the CPUs of the target: every process
// outside it, but for those in the root cpuset and outside the scope.
func (h *host) exclusive(target container.Container, pinned cpuset.CPUSet) []string {
	h.t.Helper()
	var wrong []string
	// What is pinned inside the target is lost to the rest of it.
	now := decoded(h.t, h.facts())
	inner := cpuset.New()
	for at, cpus := range now.pins() {
		if below(at, target.Group.CPUSetPath) {
			inner = inner.Union(cpus)
		}
	}
	held, _ := now.placing(target.Group.Path)
	lends := !sharedCPUs(held).IsEmpty()
	for _, set := range sorted(now.Sets) {
		pids, err := h.k.Procs(cgroup.CPUSet, set)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, pid := range pids {
			in, _ := h.k.At(pid, cgroup.CPU)
			allowed, _ := h.k.Allowed(pid)
			switch inside := cgroup.Below(in, target.Group.Path); {
			case inside && !allowed.Equals(pinned.Difference(inner)) && !h.pinnedInside(set, target, allowed):
				wrong = append(wrong, fmt.Sprintf("pid %d of the target in %s may use %s", pid, set, allowed))
			case !inside && lends && now.secondary(in):
			case !inside && set != "/" && cgroup.Below(set, h.options.Scope) && !allowed.Intersection(pinned).IsEmpty():
				wrong = append(wrong, fmt.Sprintf("pid %d in %s may use %s", pid, set, allowed))
			}
		}
	}
	return append(wrong, h.k.Check()...)
}

// secondary tells whether a cgroup is that of a secondary in force.
func (f facts) secondary(path string) bool {
	for _, held := range f.Held {
		if held.Remedy == string(Secondary) && cgroup.Below(path, held.Target) {
			return true
		}
	}
	return false
}

// pinnedInside tells whether a cpuset inside the target is pinned to these CPUs, or narrowed.
func (h *host) pinnedInside(set string, target container.Container, allowed cpuset.CPUSet) bool {
	for at, cpus := range decoded(h.t, h.facts()).pins() {
		if below(at, target.Group.CPUSetPath) && cgroup.Below(set, at) && allowed.Equals(cpus) {
			return true
		}
	}
	for at := range decoded(h.t, h.facts()).floating() {
		if below(at, target.Group.CPUSetPath) && cgroup.Below(set, at) {
			return true
		}
	}
	return false
}

func parse(t testing.TB, list string) cpuset.CPUSet {
	t.Helper()
	set, err := topology.ParseList(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func machine(t testing.TB, cpus string) topology.Machine {
	t.Helper()
	sys, err := fs.Sub(sysfs(parse(t, cpus)), "sys")
	if err != nil {
		t.Fatal(err)
	}
	m, err := topology.Read(sys)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
