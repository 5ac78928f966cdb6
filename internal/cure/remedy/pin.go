package remedy

import (
	"math"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/placement"
)

// Pin gives exclusive CPUs close together, and takes the quota away.
const Pin = Kind(forecast.Pin)

// pin is the row of Pin.
var pin = Remedy{
	Kind: Pin,
	Settings: []Setting{
		{Flag: "cpus"}, {Flag: "reserve"}, {Flag: "class", needs: hybridHere, value: ClassHybrid}, {Flag: "strict"},
		{Flag: "lends", needs: lendingHere}, {Flag: "irqs", needs: interruptsHere}, {Flag: "realtime", needs: realtimeHere},
		{Flag: "full-cores", needs: coresHere}, {Flag: "idle-siblings", needs: siblingsHere}, {Flag: "mems", needs: memoryHere},
		{Flag: "stays"},
	},
	Classes: []placement.Class{placement.Exclusive, placement.Hybrid},
	Effects: []*forecast.Effect{forecast.PinEffect},
	// A limit that is no whole number of CPUs is rounded up.
	MayGrantMore: true,
	ShowsDemand:  true,
	Merit:        &Merit{Rank: 1, Why: "CPUs of its own end the stops, and the latency given tells whether that helps", Judged: true},
	here:         cpusHere,
	request: func(row forecast.Remedy, r *Request) string {
		r.CPUs = row.CPUs
		return ""
	},
	row: func(r Request, c forecast.Container) (forecast.Remedy, bool) {
		if r.CPUs > 0 {
			c.CPUs = r.CPUs
		}
		return forecast.Remedy{Name: forecast.Pin, CPUs: c.CPUs}, r.Class != ClassHybrid
	},
	plan:       (*planner).pin,
	parameters: []string{paramCPUs, paramSet, paramPool, paramLimit, paramShares, paramImmovable, paramIRQs, paramCores, paramIdle},
	needs:      []string{paramCPUs},
}

// pin plans exclusive CPUs: which, who leaves them, and whose quota goes.
func (p *planner) pin() error {
	if p.f.CPUSetVersion == 0 {
		return p.refuse("the cpuset controller is not mounted here", "")
	}
	if p.r.Class == ClassHybrid {
		return p.hybrid()
	}
	n, err := p.pinSize()
	if err != nil {
		return err
	}
	targetCpuset, err := p.pinnedCpuset()
	if err != nil {
		return err
	}
	choice, err := p.choose(targetCpuset, n)
	if err != nil {
		return err
	}
	p.pinnedTo(targetCpuset, choice)
	if err := p.enable(targetCpuset); err != nil {
		return err
	}
	p.settle(targetCpuset, choice.own, "CPUs set apart for "+p.target.Name+": "+choice.why)
	if err := p.moveOthers(targetCpuset, choice.withdrawn()); err != nil {
		return err
	}
	if p.f.Groups[p.target.Group.Path].Limit.Limited() {
		p.quotaOff(p.target.Group.Path, "quota off: these CPUs bound it")
	}
	if err := p.liftAncestors(float64(n)); err != nil {
		return err
	}
	p.innerQuotas()
	p.warn("%s protected only from containers that exist now; run the agent to keep new ones off", text.CPUsAre(choice.own.String()))
	if n := p.emptied(); n > 0 {
		p.warn("%d cpuset.cpus are empty now (all of the parent's CPUs); kernels before 7.0 cannot empty them again "+
			"while processes are inside, "+
			"so that restore gives them all of their parent's CPUs by name", n)
	}
	if choice.shared > 0 {
		p.warn("%s shared with others", text.CountOf(choice.shared, "of its cores is", "of its cores are"))
	}
	return nil
}

// pinnedCpuset is the target's cpuset, where it can be pinned.
func (p *planner) pinnedCpuset() (targetCpuset, error) {
	targetCpuset, err := p.targetCpuset()
	if err != nil {
		return targetCpuset, err
	}
	if by := p.cpusetByKubelet(); by != "" {
		return targetCpuset, p.refuse(by+" may write another cpuset at any time, and a pin has no quota",
			"make it a Guaranteed pod with whole CPUs, which gets CPUs of its own from the kubelet, or try --remedy narrow")
	}
	if err := p.crowdedAncestors(targetCpuset); err != nil {
		return targetCpuset, err
	}
	return targetCpuset, p.insideTarget(targetCpuset)
}

// cpusetByKubelet names the kubelet that gives out CPUs, and may write another cpuset over the target's at any time; "": none does.
func (p *planner) cpusetByKubelet() string {
	if p.target.PodUID == "" || len(p.f.Claims) == 0 {
		return ""
	}
	return p.f.Claims[0].By
}

// pinnedTo notes what the target has alone, and what idles for it.
func (p *planner) pinnedTo(targetCpuset targetCpuset, c chosen) {
	p.plan.CPUs = c.own
	p.plan.Parameters[paramCPUs] = c.own.String()
	p.plan.Parameters[paramSet] = targetCpuset.path
	if p.r.FullCores {
		p.plan.Parameters[paramCores] = "full"
	}
	if p.r.IdleSiblings {
		p.plan.Parameters[paramIdle] = c.idle.String()
	}
	p.markImmovable()
	if p.r.Shares {
		p.plan.Parameters[paramShares] = "yes"
		p.warn("secondary containers may use its CPUs while they idle: those that come later, and those there are " +
			"once the agent or their own " +
			"remedy applied again gives them to them")
	}
}

// markImmovable notes that the target must not be moved.
func (p *planner) markImmovable() {
	if p.r.Immovable {
		p.plan.Parameters[paramImmovable] = "yes"
	}
}

// pinSize is how many CPUs the target gets.
func (p *planner) pinSize() (int, error) {
	switch {
	case p.r.CPUs > 0:
		return p.r.CPUs, nil
	}
	limit, limited, _ := cgroup.Effective(p.levels())
	if !limited {
		return 0, p.refuse("neither it nor an ancestor has a limit, so nothing is throttled", "give --cpus N to pin it all the same")
	}
	return max(1, int(math.Ceil(limit-epsilon))), nil
}

// list shows a set of CPUs, also an empty one.
func list(s cpuset.CPUSet) string {
	if s.IsEmpty() {
		return "none"
	}
	return s.String()
}

// sets are the paths of all cpusets, parents first; sorted once.
func (p *planner) sets() []string {
	if p.sorted == nil {
		p.sorted = sorted(p.f.Sets)
	}
	return p.sorted
}

// top is the highest cpuset that can be seen.
func (p *planner) top() string {
	if len(p.sets()) == 0 {
		return "/"
	}
	return p.sets()[0]
}

// unavailable are the CPUs that others claim, and who claims them. Cpusets
// above the target are where it lives, and those inside it are its own; neither
// is a claim of others. Without a target cpuset, all claims.
func (p *planner) unavailable(targetCpuset targetCpuset) []hoststate.Claim {
	claims := append([]hoststate.Claim{}, p.f.Claims...)
	if isolated := p.f.Machine.Isolated(); !isolated.IsEmpty() {
		claims = append(claims, hoststate.Claim{CPUs: isolated, By: "isolcpus"})
	}
	pins, floating, removed, system := p.f.withdrawn(), p.f.floating(), p.f.removed(), p.f.systemSets()
	for _, path := range p.sets() {
		s := p.f.Sets[path]
		switch {
		case path == p.top() || targetCpuset.path != "" && (cgroup.Below(path, targetCpuset.path) || cgroup.Below(targetCpuset.path, path)):
		case !pins[path].IsEmpty():
			claims = append(claims, hoststate.Claim{CPUs: pins[path], By: "the pin of " + text.Name(path), Pinned: path})
		case s.InPartition():
			claims = append(claims, hoststate.Claim{CPUs: s.Effective.Union(s.ExclusiveEffective),
				By: "the partition " + text.Name(path), Set: path})
		case !s.ExclusiveCPUs.IsEmpty():
			claims = append(claims, hoststate.Claim{CPUs: s.ExclusiveCPUs, By: "cpuset.cpus.exclusive of " + text.Name(path), Set: path})
		case p.f.CPUSetVersion == cgroup.V1 && s.Exclusive:
			claims = append(claims, hoststate.Claim{CPUs: s.Effective, By: "the exclusive cpuset " + text.Name(path), Set: path})
		case !floating[path].IsEmpty() || system[path]:
			// Others may use those.
		case p.confinedByOthers(path, removed):
			claims = append(claims, hoststate.Claim{CPUs: s.Effective, By: "the cpuset " + text.Name(path), Set: path, Shares: true})
		}
	}
	return claims
}

// confinedByOthers reports whether another program confined a cpuset to fewer CPUs than its
// parent has: what we took out of it ourselves does not count, nor a cpuset that we created.
func (p *planner) confinedByOthers(path string, removed map[string]cpuset.CPUSet) bool {
	s, above := p.f.Sets[path], p.f.Sets[parent(path)]
	if s.Configured.IsEmpty() || p.f.madeByUs(change.KindCgroup, path) {
		return false
	}
	return !above.Effective.IsSubsetOf(s.Effective.Union(removed[path]))
}

// settle confines the target to its CPUs.
func (p *planner) settle(targetCpuset targetCpuset, pinned cpuset.CPUSet, why string) {
	for _, made := range targetCpuset.create {
		p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindCgroup, Op: change.OpSet,
			Controller: cgroup.CPUSet, Path: made, To: change.Present, Why: "a cpuset for " + p.target.Name})
		to := targetCpuset.allowed
		if made == targetCpuset.path {
			to = pinned
		}
		p.setList(made, cgroup.FileCPUs, "", to.String(), why)
		p.setList(made, cgroup.FileMems, "", targetCpuset.mems.String(), "memory nodes as before")
	}
	if len(targetCpuset.create) > 0 {
		p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindTask, Op: change.OpSet,
			Controller: cgroup.CPUSet, Path: targetCpuset.path, From: targetCpuset.from, To: targetCpuset.path,
			MembersController: cgroup.CPU,
			MembersPath:       p.target.Group.Path, Why: "into the cpuset of its own"})
		return
	}
	p.setCPUs(targetCpuset.path, pinned, why)
	if p.f.CPUSetVersion == cgroup.V2 {
		return
	}
	taken := p.f.taken()
	for _, inner := range p.sets() {
		s := p.f.Sets[inner]
		switch {
		case !below(inner, targetCpuset.path) || s.Configured.IsEmpty():
		case !s.Configured.IsSubsetOf(pinned):
			p.setCPUs(inner, pinned, "inside "+p.target.Name)
		case !taken[inner].IsEmpty():
			// Otherwise the rollback of a removal would add CPUs that its new parent lacks.
			p.setCPUs(inner, s.Configured, "inside "+p.target.Name)
		}
	}
}

// setCPUs sets a list of CPUs, through systemd where a unit owns the cgroup.
func (p *planner) setCPUs(path string, to cpuset.CPUSet, why string) {
	p.setList(path, cgroup.FileCPUs, p.f.Sets[path].Cpus, to.String(), why)
}

func (p *planner) setList(path, file, from, to, why string) {
	p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindFile, Op: change.OpSet,
		Controller: cgroup.CPUSet, Path: path, File: file, From: from, To: to, Why: why})
}

// emptied counts the lists that are empty on v2 and get a value.
func (p *planner) emptied() int {
	n := 0
	for _, c := range p.plan.Changes {
		if p.f.CPUSetVersion == cgroup.V2 && c.Kind == change.KindFile && c.File == cgroup.FileCPUs && strings.TrimSpace(c.From) == "" {
			n++
		}
	}
	return n
}
