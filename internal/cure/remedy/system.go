package remedy

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// System confines the host's own processes to the reserve. It is for no
// container, so that Kinds has it not, and nothing chooses it by itself.
const System Kind = "system"

// systemName is what people call its target.
const systemName = "system"

// system is the row of System, which no container gets: it is not in the table.
var system = Remedy{Kind: System, parameters: []string{paramCPUs, paramAsked}, needs: []string{paramCPUs}}

// ConfineSystem plans to keep the host's own slices on the reserve
// (systemSlices, directly below the scope where there is one): their cpusets
// become the CPUs of Request.Reserve, else as many as their measured use asks
// for. Of a slice that also holds containers, units with a limit or such with
// CPUs of their own only the rest is confined, unit by unit.
//
// Where it is in force already the plan takes its place, with the CPUs that the
// use asks for by now; no changes then: all is as it should be.
//
// The error is a *Refused where nothing can be confined, where the reserve is
// smaller than what they were seen to use or not theirs to have, and where their
// use is not known and no reserve was asked for.
func ConfineSystem(host hoststate.Facts, r Request) (Plan, error) {
	f, err := decode(host)
	if err != nil {
		return Plan{}, err
	}
	r.Kind = System
	top := f.systemTop()
	p := &planner{f: f, r: r, target: container.Container{Name: systemName,
		Group: cgroup.Group{Path: top, CPUSetPath: top, CPUAcctPath: top}}}
	p.plan = Plan{Target: p.target, Remedy: System, Parameters: map[string]string{}}
	if err := p.validate(); err != nil {
		return Plan{}, err
	}
	if f.CPUSetVersion == 0 {
		return Plan{}, p.refuse("the cpuset controller is not mounted here", "")
	}
	paths, err := p.systemPaths()
	if err != nil {
		return Plan{}, err
	}
	kept, err := p.systemReserve(paths)
	if err != nil {
		return Plan{}, err
	}
	p.plan.Parameters[paramCPUs] = kept.String()
	if r.Reserve != nil {
		p.plan.Parameters[paramAsked] = "yes"
	}
	for _, path := range paths {
		if err := p.enable(targetCpuset{path: path}); err != nil {
			return Plan{}, err
		}
	}
	p.onceEach()
	for _, path := range paths {
		p.confineTo(path, kept)
	}
	p.takesPlace()
	p.viaSystemd()
	return p.plan, nil
}

// systemTop is the cgroup whose children the system slices are.
func (f facts) systemTop() string {
	if f.Scope != "" {
		return f.Scope
	}
	return "/"
}

// systemPaths are the cpusets to be confined. What is left out is in Skipped.
func (p *planner) systemPaths() ([]string, error) {
	top := p.target.Group.Path
	var paths, without []string
	found, members := 0, 0
	for _, name := range systemSlices {
		path := cgroup.Join(top, name)
		_, group := p.f.Groups[path]
		if _, set := p.f.Sets[path]; set {
			found++
			members += p.f.population(path)
			paths = append(paths, p.ownPart(path)...)
		} else if group {
			found++
			without = append(without, path)
		}
	}
	beside := p.f.Sets[top].Procs
	switch {
	case found == 0:
		return nil, p.refuse(fmt.Sprintf("there is none of %s here, and %s in %s itself cannot be confined", text.Names(systemSlices),
			text.CountOf(beside, "process", "processes"), text.Name(top)), "start the host's services in cgroups of their own")
	case len(without) == found:
		return nil, p.refuse("on cgroup v1 the host's slices have no cpusets, so that their processes stay in the "+
			"root cpuset", "use cgroup v2, or give them cpusets", without...)
	case members == 0 && !p.f.HiddenProcesses:
		return nil, p.refuse(fmt.Sprintf("no process is in the host's slices; %s in %s itself cannot be confined",
			text.CountOf(beside, "process", "processes"), text.Name(top)), "start the host's services in cgroups of their own")
	case len(paths) == 0:
		return nil, p.refuse("all that the host's slices hold are containers, units with a limit or such with CPUs of their own", "")
	}
	for _, path := range without {
		p.skip(path, "it has no cpuset (cgroup v1): its processes stay where they are")
	}
	if beside > 0 {
		p.warn("%s in %s itself stay where they are (kernel threads among them)",
			text.CountOf(beside, "process", "processes"), text.Name(top))
	}
	if p.f.HiddenProcesses && p.f.CPUSetVersion == cgroup.V1 {
		p.warn("in this PID namespace cgroup v1 hides other processes: how many are confined, and how many stay in " +
			"the root cpuset, cannot be counted")
	}
	p.warn("containers started in these slices later are confined too, until the agent or this command run again leaves them out")
	return paths, nil
}

// population counts the processes at and below a cpuset.
func (f facts) population(path string) int {
	n := 0
	for at, s := range f.Sets {
		if cgroup.Below(at, path) {
			n += s.Procs
		}
	}
	return n
}

// ownPart are the cpusets at or below path, as few as will do, that hold the
// host's own processes and nothing else.
func (p *planner) ownPart(path string) []string {
	if why := p.notTheHosts(path); why != "" {
		p.skip(path, why)
		return nil
	}
	mixed := slices.ContainsFunc(p.sets(), func(at string) bool { return below(at, path) && p.notTheHosts(at) != "" })
	if !mixed {
		return []string{path}
	}
	var paths []string
	for _, child := range children(p.f.Sets, path) {
		paths = append(paths, p.ownPart(child)...)
	}
	if n := p.f.Sets[path].Procs; n > 0 {
		p.skip(path, fmt.Sprintf("%s in it itself cannot be confined without what else is in it", text.CountOf(n, "process", "processes")))
	}
	return paths
}

// notTheHosts tells why the processes of a cpuset are a workload, or were placed by
// another program, and are not the host's own; "" if they are the host's.
func (p *planner) notTheHosts(path string) string {
	s := p.f.Sets[path]
	_, confined := p.f.systemSets()[path]
	for _, c := range p.f.Containers {
		if c.Group.Path != path && c.Group.CPUSetPath != path {
			continue
		}
		if isWorkload(c.Container) {
			return "a container, and none of the host's own"
		}
	}
	_, ours := p.f.placing(path)
	switch {
	case !p.systemSlice(path) && p.f.Groups[path].Limit.Limited():
		return "it has a limit: a workload, and none of the host's own"
	case ours || s.InPartition() || !s.ExclusiveCPUs.IsEmpty() || p.f.CPUSetVersion == cgroup.V1 && s.Exclusive,
		!confined && p.confinedByOthers(path, p.f.removed()):
		return "it has CPUs of its own: " + s.Effective.String()
	}
	return ""
}

// systemSlice tells of one of the slices themselves.
func (p *planner) systemSlice(path string) bool {
	return slices.Contains(systemSlices, cgroup.Base(path)) && parent(path) == p.target.Group.Path
}

// isWorkload tells of a container of a runtime or a pod.
func isWorkload(c container.Container) bool {
	return c.PodUID != "" || c.ID != "" || c.Runtime != "" && c.Runtime != container.Systemd
}

// systemReserve are the CPUs for the slices.
func (p *planner) systemReserve(paths []string) (cpuset.CPUSet, error) {
	use, measured := p.f.usedBelow(paths)
	if !measured && p.r.Reserve == nil {
		return cpuset.CPUSet{}, p.refuse("how much CPU the host's own processes use could not be measured",
			"say which CPUs they get with --reserve")
	}
	kept := p.systemCPUs()
	wider := "reserve more with --reserve, or leave them where they are"
	switch isolated := kept.Intersection(p.f.Machine.Isolated()); {
	case kept.IsEmpty():
		return kept, p.refuse("there is no CPU for them", "")
	case !isolated.IsEmpty():
		return kept, p.refuse(fmt.Sprintf("CPUs %s are isolated: the scheduler spreads nothing over them", isolated),
			"reserve others with --reserve")
	case use > float64(kept.Size())+epsilon:
		return kept, p.refuse(fmt.Sprintf("the host's own processes use %s, and the reserve %s has %d", text.CPUs(use),
			kept, kept.Size()), wider)
	}
	for _, claim := range p.unavailable(targetCpuset{}) {
		switch taken := claim.CPUs.Intersection(kept); {
		case taken.IsEmpty():
		case claim.Shares:
			p.warn("%s shares %s of the reserve with them", claim.By, taken)
		default:
			return kept, p.refuse(fmt.Sprintf("of the reserve %s has %s", claim.By, taken), "reserve others with --reserve")
		}
	}
	for _, path := range paths {
		above, ok := p.f.Sets[parent(path)]
		if missing := kept.Difference(above.Effective); ok && !missing.IsEmpty() {
			if _, ours := p.f.systemSets()[parent(path)]; !ours {
				return kept, p.refuse(fmt.Sprintf("of the reserve %s are not among the CPUs %s of %s", missing,
					above.Effective, text.Name(parent(path))),
					"reserve others with --reserve", path)
			}
		}
	}
	if !measured {
		p.warn("how much CPU they use was not measured: whether %s is enough is not known", kept)
	} else {
		p.warn("the host's own processes used %s; they get %s, and cannot use more", text.CPUs(use), kept)
	}
	return kept, nil
}

// systemCPUs are the CPUs asked for; else those that the use asks for now. Where
// they are confined already they get more at once, and fewer only once half
// would do: a short window sees little of what they need.
func (p *planner) systemCPUs() cpuset.CPUSet {
	if p.r.Reserve != nil {
		return *p.r.Reserve
	}
	want := p.measuredReserve()
	if now := p.f.systemConfined(); now.IsSubsetOf(p.f.Machine.Online()) && want.IsSubsetOf(now) && 2*want.Size() > now.Size() {
		return now
	}
	return want
}

// usedBelow is the CPUs in use at and below paths; false: none of it was measured.
func (f facts) usedBelow(paths []string) (sum float64, measured bool) {
	for _, c := range f.Containers {
		inside := slices.ContainsFunc(paths, func(path string) bool { return cgroup.Below(c.Group.Path, path) })
		if used := f.Groups[c.Group.Path].UsedCPUs; inside && used != nil {
			sum, measured = sum+*used, true
		}
	}
	return sum, measured
}

// onceEach leaves each setting one change: slices share the cgroups above them.
func (p *planner) onceEach() {
	seen := map[change.Key]bool{}
	p.plan.Changes = slices.DeleteFunc(p.plan.Changes, func(c change.Change) bool {
		again := seen[c.Key()]
		seen[c.Key()] = true
		return again
	})
}

// confineTo sets a slice's cpuset, and on v1 what lies below it.
func (p *planner) confineTo(path string, kept cpuset.CPUSet) {
	p.setCPUs(path, kept, "the host's own processes, on the reserve")
	if p.f.CPUSetVersion == cgroup.V2 {
		return
	}
	held := p.f.systemSets()
	for _, inner := range p.sets() {
		if !below(inner, path) {
			continue
		}
		has := p.f.Sets[inner].Configured
		_, ours := held[inner]
		switch to := has.Intersection(kept); {
		case has.IsEmpty():
		case ours || to.IsEmpty():
			p.setCPUs(inner, kept, "inside "+cgroup.Base(path))
		case !has.Equals(to):
			p.setCPUs(inner, to, "inside "+cgroup.Base(path))
		}
	}
}
