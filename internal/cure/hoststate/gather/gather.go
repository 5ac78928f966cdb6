package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/topology"
)

// Options of Host and From.
type Options struct {
	// Root stands for "/": sys and var/lib/kubelet are read below it, proc for
	// the names of pause processes.
	Root fs.FS
	// Held are our transactions in force (apply.Status), Drift what became of
	// their values (apply.Drift); Scope and Named as in Facts.
	Held         []txn.InForce
	Journal      string // the file that Held is from; "": not known
	Drift        []txn.DriftItem
	Scope, Named string
	// Used is the CPU use by path where it is known already; for the others it
	// is measured over Window (0: not measured).
	Used   map[string]float64
	Window time.Duration
	// IRQ is the host's interrupts, read where a transaction in force keeps some
	// off its CPUs; nil: they cannot be.
	IRQ irq.FS
	// Systemd tells which unit owns a cgroup; nil: no systemd.
	Systemd Units
	// SchedExt says whether this host can narrow by sched_ext.
	SchedExt hoststate.SchedExt
	// Max bounds the cgroups read; 0: maxGroups.
	Max int
}

// Units tells which systemd unit a cgroup is.
type Units interface {
	Owns(path string) (unit string, ok bool)
}

// maxGroups bounds how many cgroups of each hierarchy a plan rests on.
const maxGroups = 1 << 16

// Host reads this host. cgroups that vanish meanwhile are passed over.
func Host(ctx context.Context, h *cgroup.Host, containers []container.Container, o Options) (hoststate.Facts, error) {
	return From(ctx, h, h.SameHierarchy(cgroup.CPU, cgroup.CPUSet), containers, o)
}

// From is Host on any cgroup.FS; oneTree tells whether cpu and cpuset
// share a hierarchy.
func From(ctx context.Context, fsys cgroup.FS, oneTree bool, containers []container.Container, o Options) (hoststate.Facts, error) {
	sys, err := fs.Sub(o.Root, "sys")
	if err != nil {
		return hoststate.Facts{}, err
	}
	f := hoststate.Facts{At: time.Now(), OneTree: oneTree, Groups: map[string]hoststate.Group{},
		Sets: map[string]hoststate.Set{}, Held: o.Held, Journal: o.Journal, Drift: o.Drift, Scope: o.Scope,
		Named: o.Named, SchedExt: o.SchedExt}
	if f.Machine, err = topology.Read(sys); err != nil {
		return hoststate.Facts{}, err
	}
	f.CPUVersion, _ = fsys.Version(cgroup.CPU)
	f.CPUSetVersion, _ = fsys.Version(cgroup.CPUSet)
	g := gatherer{ctx: ctx, fs: fsys, o: o, facts: &f, cpuOf: map[int]string{}, inSet: map[string][]int{}, inGroup: map[string][]int{}}
	if f.CPUVersion != 0 {
		if err := g.walk(cgroup.CPU, g.group); err != nil {
			return hoststate.Facts{}, err
		}
	}
	if f.CPUSetVersion != 0 {
		if err := g.walk(cgroup.CPUSet, g.set); err != nil {
			return hoststate.Facts{}, err
		}
	}
	if err := g.reconcileHierarchies(); err != nil {
		return hoststate.Facts{}, err
	}
	g.containers(containers)
	if err := g.hidden(); err != nil {
		return hoststate.Facts{}, err
	}
	f.Claims = claims(o.Root, f.Machine.Online())
	if o.IRQ != nil && slices.ContainsFunc(o.Held, func(h txn.InForce) bool { return h.Parameters[hoststate.ParamInterrupts] != "" }) {
		found, err := Interrupts(o.IRQ, o.Root)
		if err != nil {
			return hoststate.Facts{}, err
		}
		f.Interrupts = &found
	}
	_, err = fs.Stat(o.Root, "run/systemd/system")
	f.Systemd = err == nil
	return f, g.use(containers)
}

type gatherer struct {
	ctx     context.Context
	fs      cgroup.FS
	o       Options
	facts   *hoststate.Facts
	cpuOf   map[int]string   // where a process is in the cpu hierarchy
	inGroup map[string][]int // and the reverse
	inSet   map[string][]int // the same in the cpuset hierarchy
	peopled map[string]bool  // cpusets with processes in them or below
	burst   bool             // HasBurst is known
}

// walk visits one hierarchy from the top, within the bounds.
func (g *gatherer) walk(c cgroup.Controller, visit func(path string) error) error {
	top := "/"
	if h, ok := g.fs.(interface {
		Top(cgroup.Controller) string
	}); ok {
		top = h.Top(c)
	}
	limit, seen := g.o.Max, 0
	if limit <= 0 {
		limit = maxGroups
	}
	err := cgroup.Walk(g.fs, c, top, func(path string) error {
		if err := g.ctx.Err(); err != nil {
			return err
		}
		if seen++; seen > limit {
			return cgroup.ErrTooMuch
		}
		err := visit(path)
		if errors.Is(err, cgroup.ErrNoCgroup) {
			return fs.SkipDir
		}
		return err
	})
	if errors.Is(err, cgroup.ErrTooMuch) {
		// A plan on half a host could leave others on exclusive CPUs.
		return fmt.Errorf("there are more than %d cgroups with the %s controller: %w", limit, c, cgroup.ErrTooMuch)
	}
	return err
}

// group reads one cgroup of the cpu hierarchy.
func (g *gatherer) group(path string) error {
	var out hoststate.Group
	var err error
	if out.ID, err = g.fs.ID(cgroup.CPU, path); err != nil {
		return err
	}
	if out.Limit, err = cgroup.ReadLimit(g.fs, path); err != nil {
		return err
	}
	if out.Shares, err = cgroup.ReadShares(g.fs, path); err != nil && !errors.Is(err, cgroup.ErrNoFile) {
		return err
	}
	switch out.Idle, err = cgroup.ReadIdle(g.fs, path); {
	case err == nil:
		g.facts.HasIdle = true
	case !errors.Is(err, cgroup.ErrNoFile):
		return err
	}
	pids, err := procs(g.fs, cgroup.CPU, path)
	if err != nil {
		return err
	}
	g.inGroup[path] = pids
	out.Procs = len(pids)
	for _, pid := range pids {
		if pid <= 0 {
			out.Foreign = true
			continue
		}
		g.cpuOf[pid] = path
	}
	if g.facts.CPUVersion == cgroup.V2 {
		if out.Type, err = cgroup.ReadType(g.fs, cgroup.CPU, path); err != nil {
			return err
		}
	}
	if g.o.Systemd != nil {
		out.Unit, _ = g.o.Systemd.Owns(path)
	}
	if !g.burst {
		g.burst = g.hasBurst(path)
		g.facts.HasBurst = g.burst
	}
	g.facts.Groups[path] = out
	return nil
}

// procs lists the processes of a cgroup; a threaded one has none to list.
func procs(fsys cgroup.FS, c cgroup.Controller, path string) ([]int, error) {
	pids, err := fsys.Procs(c, path)
	if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) && threaded(fsys, c, path) {
		return nil, nil
	}
	return pids, err
}

func threaded(fsys cgroup.FS, c cgroup.Controller, path string) bool {
	kind, err := cgroup.ReadType(fsys, c, path)
	return err == nil && (kind == "threaded" || kind == "domain invalid")
}

func (g *gatherer) hasBurst(path string) bool {
	files := cgroup.LimitFiles(g.facts.CPUVersion)
	_, err := g.fs.Read(cgroup.CPU, path, files[len(files)-1])
	return err == nil
}

// set reads one cgroup of the cpuset hierarchy.
func (g *gatherer) set(path string) error {
	var out hoststate.Set
	var err error
	if out.CPUSetState, err = cgroup.ReadCPUSet(g.fs, path); err != nil {
		return err
	}
	if _, out.EffectiveMems, err = cgroup.Mems(g.fs, path); err != nil {
		return err
	}
	if out.Cpus, err = g.fs.Read(cgroup.CPUSet, path, cgroup.FileCPUs); err != nil && !errors.Is(err, cgroup.ErrNoFile) {
		return err
	}
	if g.facts.CPUSetVersion == cgroup.V2 {
		if out.Type, err = cgroup.ReadType(g.fs, cgroup.CPUSet, path); err != nil {
			return err
		}
		if out.Subtree, err = cgroup.SubtreeControl(g.fs, path); err != nil {
			return err
		}
	}
	pids := g.inGroup[path]
	if !g.facts.OneTree {
		if pids, err = procs(g.fs, cgroup.CPUSet, path); err != nil {
			return err
		}
	}
	g.inSet[path] = pids
	out.Procs = len(pids)
	g.facts.Sets[path] = out
	return nil
}
