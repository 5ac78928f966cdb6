package remedy

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// Classes of pin.
const (
	ClassExclusive = "exclusive" // the limit rounded up, exclusive
	ClassHybrid    = "hybrid"    // the whole part of the limit, and the shared pool for the fraction
)

// pool are the shared CPUs that a hybrid pin in force may use beside its own;
// empty: it is no hybrid.
func pool(h Held) cpuset.CPUSet {
	if _, ok := pinnedCPUs(h); !ok {
		return cpuset.New()
	}
	return h.Pool
}

// hybrid plans the whole part of a limit as exclusive CPUs and the fraction out
// of the shared pool, guaranteed there by weight.
func (p *planner) hybrid() error {
	limit, limited, _ := cgroup.Effective(p.levels())
	own := int(math.Floor(limit + epsilon))
	fraction := limit - float64(own)
	switch {
	case p.r.CPUs > 0:
		return p.refuse("a hybrid's CPUs are those of its limit", "leave --cpus out")
	case !limited:
		return p.refuse("neither it nor an ancestor has a limit, so there is no fraction", "")
	case own == 0:
		return p.refuse(fmt.Sprintf("of a limit of %s no whole CPU can be its own", text.CPUs(limit)), "try --remedy narrow")
	case fraction < epsilon:
		return p.refuse(fmt.Sprintf("its limit of %s has no fraction", text.CPUs(limit)), "leave --class out")
	}
	targetCpuset, err := p.pinnedCpuset()
	if err != nil {
		return err
	}
	choice, err := p.choose(targetCpuset, own)
	if err != nil {
		return err
	}
	shared := targetCpuset.allowed.Intersection(p.f.Machine.Online()).Difference(choice.withdrawn())
	for _, claim := range p.unavailable(targetCpuset) {
		shared = shared.Difference(claim.CPUs)
	}
	if shared.IsEmpty() {
		return p.refuse("no CPU would be left to share", "give exclusive CPUs back, or try --remedy narrow")
	}
	p.pinnedTo(targetCpuset, choice)
	p.plan.Parameters[paramPool] = shared.String()
	p.plan.Parameters[paramLimit] = strconv.FormatFloat(limit, 'g', 6, 64)
	if err := p.enable(targetCpuset); err != nil {
		return err
	}
	p.settle(targetCpuset, choice.own.Union(shared),
		fmt.Sprintf("%s of %s alone (%s), and the shared ones", text.CPUs(float64(own)), p.target.Name, choice.why))
	if err := p.moveOthers(targetCpuset, choice.withdrawn()); err != nil {
		return err
	}
	p.guarantee(own, fraction, shared.Size())
	if p.r.Strict {
		p.narrowLimits(limit, own+1)
		p.warn("its quota stays, as strict asks: it can be throttled again, for up to a period of %v", shortPeriod)
		return nil
	}
	if p.f.Groups[p.target.Group.Path].Limit.Limited() {
		p.quotaOff(p.target.Group.Path, "quota off: what is beyond its own CPUs it shares by weight")
	}
	width := own + shared.Size()
	if err := p.liftAncestors(float64(width)); err != nil {
		return err
	}
	p.innerQuotas()
	p.warn("it may use more than its limit while the shared CPUs %s are idle; --strict keeps the limit", shared)
	return nil
}

// guarantee raises the weights on the target's path so that where all want CPU it
// gets its fraction of a shared one, by fractionOdds. Levels that are not ours
// stay, and where the fraction is then not reached that is said: to make up for
// them below would starve the neighbours on our levels.
func (p *planner) guarantee(own int, fraction float64, pool int) {
	type level struct {
		contest
		path string
		ours bool
	}
	var contended []level
	room, ours := pool, 0
	onPath := p.target.Group.Path
	for _, l := range p.levels()[1:] {
		var others float64
		for _, child := range children(p.f.Groups, l.Path) {
			if child == onPath || p.f.Groups[child].Sandbox {
				continue
			}
			alone, pinned := p.f.pins()[p.setOf(child)]
			if pinned && p.f.pools()[p.setOf(child)].IsEmpty() {
				continue
			}
			// Another hybrid's weight is spread over its own CPUs, too.
			room += alone.Size()
			others += float64(p.f.Groups[child].Shares)
		}
		if others > 0 {
			mine := onPath == p.target.Group.Path || p.mayLift(onPath) && p.f.inScope(onPath)
			contended = append(contended, level{contest{float64(p.f.Groups[onPath].Shares), others}, onPath, mine})
			if mine {
				ours++
			}
		}
		onPath = l.Path
	}
	odds, most := fractionOdds(own, fraction, room, max(1, ours)), p.mostShares()
	cut := false
	var contests []contest
	for _, l := range contended {
		if now := p.f.Groups[l.path].Shares; l.ours {
			want := math.Ceil(odds * l.others)
			cut = cut || want > most
			shares := max(now, uint64(min(want, most)))
			p.setShares(l.path, now, shares, fmt.Sprintf("the weight that gives it %.3g of a shared CPU when all want it", fraction))
			l.weight = float64(shares)
		}
		contests = append(contests, l.contest)
	}
	if got := fractionReached(own, room, contests); got < fraction-0.02 {
		why := "the weights above it are not ours to raise"
		if cut {
			why = fmt.Sprintf("the kernel's largest weight, %s, gives no more", cgroup.SharesWrite(p.f.CPUVersion, uint64(most)).Value)
		}
		p.warn("where all want CPU it gets about %.2g of a shared CPU, not %.2g: %s", got, fraction, why)
	}
}

// mostShares is the largest weight that the kernel takes, in the unit of
// cpu.shares: MAX_SHARES on v1, CGROUP_WEIGHT_MAX on v2.
func (p *planner) mostShares() float64 {
	if p.f.CPUVersion == cgroup.V2 {
		return float64(cgroup.SharesOfWeight(cgroup.MaxWeight))
	}
	return cgroup.MaxShares
}

// setOf is the path of the cpuset of a cgroup.
func (p *planner) setOf(path string) string {
	if c, ok := p.f.container(path); ok && c.Group.CPUSetPath != "" {
		return c.Group.CPUSetPath
	}
	return path
}

// pools are the shared CPUs of our hybrids, by the path of their cpuset.
func (f facts) pools() map[string]cpuset.CPUSet { return f.bySet(pool) }

// setShares adds the change of a weight, if it is one.
func (p *planner) setShares(path string, now, shares uint64, why string) {
	if p.f.Groups[path].Idle {
		p.warn("%s has cpu.idle set, which counts for less than any weight: it stays", text.Name(path))
		return
	}
	from, to := cgroup.SharesWrite(p.f.CPUVersion, now), cgroup.SharesWrite(p.f.CPUVersion, shares)
	if now > 0 && from.Value != to.Value {
		p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindFile, Op: change.OpSet,
			Controller: cgroup.CPU, Path: path, File: to.File, From: from.Value, To: to.Value, Why: why})
	}
}
