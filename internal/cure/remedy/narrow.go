package remedy

import (
	"fmt"
	"math"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/widthcap"
	"github.com/unthrottle/unthrottle/placement"
)

// The ways in which narrow bounds how many CPUs a container uses at once: by a
// cpuset, by the scheduler of sched_ext, or by the latter where it can run and
// else by a cpuset.
const (
	ViaCPUSet   = "cpuset"
	ViaSchedExt = "sched_ext"
	ViaAuto     = "auto"
)

// Vias are all of them.
var Vias = []string{ViaSchedExt, ViaCPUSet, ViaAuto}

// shortPeriod is the period of a quota that has to stay. A thread that meets the
// end of the quota waits for the rest of the period, so that a tenth of the
// default makes the longest wait a tenth (seed 000).
const shortPeriod = scenario.NarrowPeriod

// floatingCPUs are the CPUs that a transaction in force confines its target to,
// which others may use too; false: it is no narrow.
func floatingCPUs(h Held) (cpuset.CPUSet, bool) {
	return chosenBy(Narrow, h)
}

// floating are the CPUs of our narrowed containers, by the path of their cpuset.
func (f facts) floating() map[string]cpuset.CPUSet {
	return f.bySet(func(h Held) cpuset.CPUSet {
		set, _ := floatingCPUs(h)
		return set
	})
}

// Narrow gives as many CPUs as the limit, which others may use too.
const Narrow = Kind(forecast.Narrow)

// narrow is the row of Narrow.
var narrow = Remedy{
	Kind: Narrow,
	Settings: []Setting{{Flag: "cpus"}, {Flag: "reserve"}, {Flag: "via", needs: schedExtHere, value: ViaSchedExt},
		{Flag: "credit"}, {Flag: "mems"}, {Flag: "stays"}, {Flag: "burst"}, {Flag: "period"}},
	Classes: []placement.Class{placement.Floating},
	Effects: []*forecast.Effect{forecast.NarrowEffect},
	Merit: &Merit{Rank: 2, Why: "as many CPUs as its limit, which others may use too, keep it from spending its " +
		"quota at once", Judged: true},
	here: cpusetHere,
	request: func(row forecast.Remedy, r *Request) string {
		r.Burst, r.Credit = row.Burst, row.Credit
		if row.Credit > 0 {
			r.Via = ViaSchedExt
		}
		return ""
	},
	row: func(r Request, c forecast.Container) (forecast.Remedy, bool) {
		row := forecast.Remedy{Name: forecast.Narrow, Burst: r.Burst}
		if r.viaSchedExt(c.SchedExt) {
			row.Credit = r.Credit
			if r.Credit == 0 {
				row.Credit = widthcap.Of(c.Limit).Credit
			}
		}
		return row, r.CPUs == 0 && r.Cap == 0 && r.Period == 0
	},
	plan:       (*planner).narrowed,
	parameters: []string{paramCPUs, paramSet, paramImmovable, paramCap},
	needs:      []string{paramCPUs},
}

// narrowed plans a cpuset of as many CPUs as the limit has, which others may use
// too: what cannot run at once cannot spend the quota at once. A limit of whole
// CPUs is then kept by the cpuset alone; of another one the quota stays: with a
// short period, or with a burst and the period that it has.
func (p *planner) narrowed() error {
	if p.r.viaSchedExt(p.f.SchedExt.Can) {
		return p.capped()
	}
	if p.r.Via == ViaAuto {
		if p.r.Cap > 0 && p.r.CPUs == 0 {
			return p.refuse(fmt.Sprintf("sched_ext cannot narrow here (%s), and a cpuset has whole CPUs only",
				p.f.SchedExt.Why), "give a whole number of --cpus, or leave it out")
		}
		p.warn("by a cpuset, which saves no credit: %s", p.f.SchedExt.Why)
	}
	if p.f.CPUSetVersion == 0 {
		return p.refuse("the cpuset controller is not mounted here", "")
	}
	limit, limited, _ := cgroup.Effective(p.levels())
	n, err := p.pinSize()
	if err != nil {
		return err
	}
	if err := p.narrowBurst(limit, limited, n); err != nil {
		return err
	}
	if limited && float64(n) < limit-epsilon {
		return p.refuse(fmt.Sprintf("%s are fewer than its limit of %s", text.CPUs(float64(n)), text.CPUs(limit)), "leave --cpus out")
	}
	targetCpuset, err := p.targetCpuset()
	if err != nil {
		return err
	}
	if err := p.insideTarget(targetCpuset); err != nil {
		return err
	}
	choice, err := p.float(targetCpuset, n)
	if err != nil {
		return err
	}
	p.plan.Parameters[paramCPUs] = choice.own.String()
	p.plan.Parameters[paramSet] = targetCpuset.path
	p.markImmovable()
	if err := p.enable(targetCpuset); err != nil {
		return err
	}
	if !choice.own.Equals(targetCpuset.allowed) || len(targetCpuset.create) == 0 {
		p.settle(targetCpuset, choice.own, "as many CPUs as "+p.target.Name+" may use")
	}
	p.warn("CPUs %s: %s; others may use them too", choice.own, choice.why)
	if limited {
		p.narrowLimits(limit, n)
	}
	return nil
}

// narrowBurst refuses a burst of a narrow that could not spend it.
func (p *planner) narrowBurst(limit float64, limited bool, n int) error {
	switch {
	case p.r.Burst == 0:
		return nil
	case !p.f.HasBurst:
		return p.refuse(noBurst, "leave --burst out")
	case p.r.Period > 0:
		return p.refuse("with a burst the period stays as it is", "give one of --burst and --period")
	case !limited || p.keptByCPUSet(limit, n):
		return p.refuse("a burst needs a quota that stays, and narrow keeps none of a limit of whole CPUs", "leave --burst out")
	}
	return p.noSpare(limit)
}

// keptByCPUSet tells whether a cpuset of so many CPUs keeps a limit by itself.
func (p *planner) keptByCPUSet(limit float64, n int) bool {
	return math.Abs(limit-float64(n)) < epsilon && p.cpusetByKubelet() == ""
}

// narrowLimits takes the target's quota off, or shortens its period or gives it a
// burst, and does the same to the ancestors' quotas that may bind.
func (p *planner) narrowLimits(limit float64, n int) {
	whole := p.keptByCPUSet(limit, n)
	own, hasOwn := p.f.Groups[p.target.Group.Path].Limit.Bound()
	switch {
	case hasOwn && whole:
		p.quotaOff(p.target.Group.Path, "quota off: its CPUs are as many as its limit")
	case hasOwn && own < float64(n)+epsilon:
		p.soften(p.target.Group.Path)
	default:
		p.keepLimit(p.target.Group.Path)
	}
	onPath, demand := p.target.Group.Path, float64(n)
	if hasOwn && !whole {
		demand = min(demand, own)
	}
	for _, level := range p.levels()[1:] {
		width, unbounded := p.others(level.Path, onPath)
		onPath = level.Path
		demand = min(demand+width, p.hostCPUs())
		quota, has := level.Limit.Bound()
		switch {
		case !has || demand < quota-epsilon:
			p.keepLimit(level.Path)
			continue
		case !p.mayLift(level.Path) || !p.f.inScope(level.Path):
			p.keepLimit(level.Path)
			p.skip(level.Path, fmt.Sprintf("its quota of %s stays as it is and may still stop one: it is neither a "+
				"pod's nor below a cgroup that you named",
				text.CPUs(quota)))
		case whole && len(unbounded) == 0 && demand <= quota+epsilon:
			p.quotaOff(level.Path, "quota off: what is below it is bounded by its own")
			continue
		default:
			p.soften(level.Path)
		}
		demand = quota
	}
}

// soften makes the stops of a quota that stays shorter or rarer.
func (p *planner) soften(path string) {
	l := p.f.Groups[path].Limit
	if p.r.Burst == 0 {
		p.shorten(path)
		return
	}
	l.Burst = min(p.r.Burst, l.Quota)
	p.setLimit(path, l, mayBeSpent)
}

// shorten gives a quota a short period, the limit staying the same: as short as
// the least quota that the kernel takes allows.
func (p *planner) shorten(path string) {
	l := p.f.Groups[path].Limit
	n, _ := l.Bound()
	period := p.r.Period
	if period == 0 {
		period = shortPeriod
	}
	shorter, ok := scenario.Shortened(l, period)
	if !ok {
		p.keepLimit(path)
		return
	}
	p.setLimit(path, p.covering(path, shorter, n),
		fmt.Sprintf("same limit of %s in periods of %v: shorter waits once the quota is used up", text.CPUs(n), shorter.Period))
}
