package remedy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// epsilon is what two numbers of CPUs may differ by and still be equal: far
// below what a quota in microseconds can express.
const epsilon = 1e-6

// levels are the limits of the target and its ancestors, nearest first.
func (p *planner) levels() []cgroup.Level { return p.f.levels(p.target.Group.Path) }

// levels are the limits of a cgroup and its ancestors, nearest first.
func (f facts) levels(path string) []cgroup.Level {
	all := []cgroup.Level{{Path: path, Limit: f.Groups[path].Limit}}
	for _, a := range ancestors(path) {
		if g, ok := f.Groups[a]; ok {
			all = append(all, cgroup.Level{Path: a, Limit: g.Limit})
		}
	}
	return all
}

// limitTexts spells a limit as the kernel prints its files.
func limitTexts(v cgroup.Version, l cgroup.Limit) map[string]string {
	files := cgroup.LimitFiles(v)
	texts := map[string]string{files[len(files)-1]: "0"}
	for _, w := range cgroup.LimitWrites(v, cgroup.Limit{}, l, false) {
		texts[w.File] = w.Value
	}
	return texts
}

// setLimit adds the changes that take a cgroup to another limit. Where another
// transaction of ours holds a part of it, this one holds all of it, also what
// stays the same: taking that one back must neither take away what this one
// rests on nor leave a burst above its quota.
func (p *planner) setLimit(path string, want cgroup.Limit, why string) {
	cur := p.f.Groups[path].Limit
	from, to := limitTexts(p.f.CPUVersion, cur), limitTexts(p.f.CPUVersion, want)
	for _, file := range cgroup.LimitFiles(p.f.CPUVersion) {
		if from[file] != to[file] || p.f.holdsLimit(path) && p.has(file) {
			p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindFile, Op: change.OpSet,
				Controller: cgroup.CPU, Path: path, File: file, From: from[file], To: to[file], Why: why})
		}
	}
}

// keepLimit holds a limit as it is, where it is so because of another
// transaction of ours.
func (p *planner) keepLimit(path string) {
	if p.f.holdsLimit(path) && p.f.inScope(path) {
		p.setLimit(path, p.f.Groups[path].Limit, "as it is")
	}
}

// has tells whether the kernel has a limit file.
func (p *planner) has(file string) bool {
	return p.f.HasBurst || !cgroup.IsBurst(file)
}

// inPeriod is the same limit of a cgroup in another period. A burst above the new quota is cut to it.
func (p *planner) inPeriod(path string, l cgroup.Limit, period time.Duration) cgroup.Limit {
	cpus, _ := l.Bound()
	return p.covering(path, l.In(period), cpus)
}

// covering rounds the quota of an ancestor up to so many CPUs where it was rounded down: cgroup v1 refuses one that is below a
// child's, by however little.
func (p *planner) covering(path string, l cgroup.Limit, cpus float64) cgroup.Limit {
	if now, ok := l.Bound(); ok && now < cpus && path != p.target.Group.Path {
		l.Quota += bandwidth.Unit
	}
	return l
}

// quotaOff lifts a quota; period and burst stay, the kernel keeps them.
func (p *planner) quotaOff(path, why string) {
	l := p.f.Groups[path].Limit
	l.Quota = -1
	p.setLimit(path, l, why)
}

// width is the most CPUs that a cgroup off the target's path can use at once:
// its quota, the CPUs it is confined to, or without either all of them (+Inf,
// since what matters then is that nothing bounds it).
func (p *planner) width(path string) float64 {
	w := math.Inf(1)
	if cpus, ok := p.f.Groups[path].Limit.Bound(); ok {
		w = cpus
	}
	if n, ok := p.confined(path); ok {
		w = min(w, n)
	}
	if p.f.Groups[path].Sandbox {
		w = 0
	}
	return w
}

// confined tells how many CPUs a cgroup may use at most, where something keeps it
// there: a pin or narrow of ours, a v2 partition or a v1 exclusive cpuset.
func (p *planner) confined(path string) (float64, bool) {
	set := path
	if c, ok := p.f.container(path); ok && c.Group.CPUSetPath != "" {
		if !c.OwnSet {
			return 0, false
		}
		set = c.Group.CPUSetPath
	}
	if cpus, ok := p.f.pins()[set]; ok {
		return float64(cpus.Union(p.f.pools()[set]).Size()), true
	}
	if cpus, ok := p.f.floating()[set]; ok {
		return float64(cpus.Size()), true
	}
	s, ok := p.f.Sets[set]
	if !ok || set == "/" || !(s.InPartition() || p.f.CPUSetVersion == cgroup.V1 && s.Exclusive) {
		return 0, false
	}
	return float64(s.Effective.Size()), true
}

// others looks at the children of a level that are not on the target's path:
// the CPUs they can use at most together, and those that nothing bounds. With
// them stand the processes of the level itself (v1).
func (p *planner) others(level, onPath string) (width float64, unbounded []string) {
	for _, child := range children(p.f.Groups, level) {
		if child == onPath {
			continue
		}
		w := p.width(child)
		if width += w; math.IsInf(w, 1) {
			unbounded = append(unbounded, child)
		}
	}
	if p.f.Groups[level].Procs > 0 {
		width, unbounded = math.Inf(1), append(unbounded, level+" (its own processes)")
	}
	return width, unbounded
}

// mayChange refuses a limit whose quota binds at an ancestor that is not ours to change.
func (p *planner) mayChange(at string) error {
	if at == p.target.Group.Path || p.mayLift(at) && p.f.inScope(at) {
		return nil
	}
	return p.refuse(fmt.Sprintf("the quota that binds is that of %s, which is neither a pod's nor below a cgroup "+
		"that you named", text.Name(at)),
		"name a cgroup above it with --lift-below", at)
}

// mayLift tells whether an ancestor's quota is ours to lift: on pod level, or
// below a cgroup that the user named.
func (p *planner) mayLift(path string) bool {
	return p.isPod(path) || p.f.Named != "" && below(path, p.f.Named) || p.f.Scope != "" && below(path, p.f.Scope)
}

// liftAncestors lifts every ancestor's quota that would still bind a target
// that can use up to demand CPUs at once. A quota that equals what can be used
// below it costs next to nothing (a CPU's first tick may find it empty) and is
// left where it may not be lifted.
func (p *planner) liftAncestors(demand float64) error {
	onPath := p.target.Group.Path
	for _, level := range p.levels()[1:] {
		width, unbounded := p.others(level.Path, onPath)
		onPath = level.Path
		demand = min(demand+width, p.hostCPUs())
		quota, limited := level.Limit.Bound()
		if !limited || demand < quota-epsilon {
			p.keepLimit(level.Path)
			continue
		}
		allowed := p.mayLift(level.Path) && p.f.inScope(level.Path) && len(unbounded) == 0
		switch {
		case allowed:
			if p.f.HiddenProcesses && p.f.CPUVersion == cgroup.V1 {
				p.warn("whether %s holds processes itself, which would become unlimited, cannot be seen here: v1 "+
					"hides processes of other PID namespaces",
					text.Name(level.Path))
			}
			p.quotaOff(level.Path, "quota off: it would still stop "+p.target.Name)
		case demand <= quota+epsilon:
			p.skip(level.Path, fmt.Sprintf("its quota of %s equals what can be used below it: about 1 ms now and then",
				text.CPUs(quota)))
		case !p.f.inScope(level.Path):
			return p.refuse(fmt.Sprintf("the quota of %s at %s would still bind, and lies outside the scope", text.CPUs(quota),
				text.Name(level.Path)), "give a scope that holds it", level.Path)
		case len(unbounded) > 0:
			return p.refuse(fmt.Sprintf("the quota of %s at %s would still bind, and without it these would become unlimited",
				text.CPUs(quota), text.Name(level.Path)), "give them quotas of their own first", unbounded...)
		default:
			return p.refuse(fmt.Sprintf("the quota of %s at %s would still bind, and it is neither a pod's nor below "+
				"a cgroup that you named",
				text.CPUs(quota), text.Name(level.Path)), "name a cgroup above it with --lift-below", level.Path)
		}
		if !allowed {
			demand = quota
		}
	}
	return nil
}

// isPod tells whether path is the cgroup of the target's pod: "pod<uid>" or, of
// the systemd driver, "...-pod<uid>.slice" with underscores (kubelet,
// pkg/kubelet/cm/pod_container_manager_linux.go). CRI-O appends ":<driver>".
func (p *planner) isPod(path string) bool {
	uid := p.target.PodUID
	if uid == "" {
		return false
	}
	base, _, _ := strings.Cut(cgroup.Base(path), ":")
	return base == "pod"+uid || strings.HasSuffix(base, "-pod"+strings.ReplaceAll(uid, "-", "_")+".slice")
}

// hostCPUs is what can be used at most, whatever a quota allows.
func (p *planner) hostCPUs() float64 { return float64(p.f.Machine.Online().Size()) }

// innerQuotas warns of quotas below the target, which stay.
func (p *planner) innerQuotas() {
	var inner []string
	for path, g := range p.f.Groups {
		if below(path, p.target.Group.Path) && g.Limit.Limited() {
			inner = append(inner, path)
		}
	}
	if slices.Sort(inner); len(inner) > 0 {
		p.warn("cgroups inside the target keep quotas of their own: %s", text.Names(inner))
	}
}
