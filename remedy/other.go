package remedy

import (
	"fmt"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/change"
)

// saturated is the share of its limit from which on a container leaves nothing
// that could be saved up.
const saturated = 0.95

// burst keeps the quota and lets unused time of earlier periods be spent.
func (p *planner) burst() error {
	if !p.f.HasBurst {
		return p.refuse("this kernel has no burst (since 5.14)", "try --remedy pin or raise")
	}
	limit, limited, at := cgroup.Effective(p.levels())
	if !limited {
		return p.refuse("neither it nor an ancestor has a quota", "")
	}
	if o := p.r.Observed; o != nil && o.UsedCPUs != nil && *o.UsedCPUs >= saturated*limit {
		return p.refuse(fmt.Sprintf("it uses %s of %s on the mean, so there is never any unused time that a burst could borrow",
			cpus(*o.UsedCPUs), cpus(limit)), "it needs more CPU: try --remedy raise or pin")
	}
	if p.r.Burst < 0 || p.r.Period < 0 {
		return p.refuse("a negative burst or period makes no sense", "")
	}
	path := p.target.Group.Path
	own := p.f.Groups[path].Limit
	if at != path && !p.mayLift(at) {
		return p.refuse(fmt.Sprintf("the quota that binds is that of %s, which is neither a pod's nor below a cgroup that you named", quoted(at)),
			"name a cgroup above it with --scope", at)
	}
	for _, level := range p.levels() {
		cpusHere, ok := level.Limit.CPUs()
		switch {
		case !ok:
		case level.Path != path && (!p.mayLift(level.Path) || !p.f.inScope(level.Path)):
			if !own.Limited() || cpusHere < 2*limit {
				p.skip(level.Path, fmt.Sprintf("its quota of %s stays without burst and may still stop one", cpus(cpusHere)))
			}
		default:
			want, err := p.bursting(level)
			if err != nil {
				return err
			}
			p.setLimit(level.Path, want, "unused time of earlier periods may be spent")
		}
	}
	p.expectQuota(limit, limit)
	return nil
}

// bursting is the limit of one level with burst.
func (p *planner) bursting(level cgroup.Level) (cgroup.Limit, error) {
	want := level.Limit
	if p.r.Period > 0 && level.Path == p.target.Group.Path {
		n, _ := want.CPUs()
		want.Period = p.r.Period
		want.Quota = time.Duration(n * float64(p.r.Period)).Round(time.Microsecond)
	}
	want.Burst = want.Quota
	if p.r.Burst > 0 {
		want.Burst = p.r.Burst
		if level.Path != p.target.Group.Path {
			want.Burst = min(p.r.Burst, want.Quota)
		}
	}
	if err := want.Check(); err != nil {
		return want, p.refuse(err.Error(), "choose a burst up to the quota and a period of 1 ms to 1 s")
	}
	return want, nil
}

// weight takes the quota off and leaves the weight to share the CPUs.
func (p *planner) weight() error {
	path := p.target.Group.Path
	limit, limited, _ := cgroup.Effective(p.levels())
	if !limited {
		return p.refuse("neither it nor an ancestor has a quota", "")
	}
	width := float64(p.f.Machine.Online().Size())
	if s, ok := p.f.Sets[p.target.Group.CPUSetPath]; ok && !s.Effective.IsEmpty() {
		width = float64(s.Effective.Size())
	}
	if p.f.Groups[path].Limit.Limited() {
		p.quotaOff(path, "quota off: its weight decides when others want CPU too")
	}
	if err := p.liftAncestors(width); err != nil {
		return err
	}
	p.innerQuotas()
	shares := p.r.Shares
	if p.r.WeightFromLimit {
		shares = uint64(limit*cgroup.DefaultShares + 0.5)
	}
	if now := p.f.Groups[path].Shares; shares > 0 && now > 0 {
		from, to := cgroup.SharesWrite(p.f.CPUVersion, now), cgroup.SharesWrite(p.f.CPUVersion, shares)
		if from.Value != to.Value {
			p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindFile, Op: change.OpSet,
				Controller: cgroup.CPU, Path: path, File: to.File, From: from.Value, To: to.Value, Why: "a weight like its limit of " + cpus(limit)})
		}
	}
	p.warn("nothing bounds it but the weights of the others: it may use up to %s", cpus(width))
	p.expectNoQuota(width)
	return nil
}

// raise gives a larger limit, and ancestors the difference as far as they would
// bind otherwise.
func (p *planner) raise() error {
	path := p.target.Group.Path
	limit, limited, at := cgroup.Effective(p.levels())
	if !limited {
		return p.refuse("neither it nor an ancestor has a limit to raise", "")
	}
	to, err := p.raised(limit)
	if err != nil {
		return err
	}
	p.plan.Parameters["to"] = strconv.FormatFloat(to, 'g', 6, 64)
	more, demand := to-limit, to
	if own, ok := p.f.Groups[path].Limit.CPUs(); ok {
		more, demand = max(0, to-own), max(to, own)
	} else if at == path {
		return p.refuse("its limit cannot be told", "")
	}
	onPath := ""
	for i, level := range p.levels() {
		quota, limitedHere := level.Limit.CPUs()
		if i > 0 {
			width, _ := p.others(level.Path, onPath)
			demand += width
		}
		onPath = level.Path
		if !limitedHere || quota >= demand-epsilon && i > 0 || quota >= to && i == 0 {
			continue
		}
		want := to
		if i > 0 {
			want = max(to, min(demand, quota+more))
			if quota >= want-epsilon {
				demand = quota
				continue
			}
			if !p.f.inScope(level.Path) {
				return p.refuse(fmt.Sprintf("the quota of %s at %s would still bind, and lies outside the scope", cpus(quota), quoted(level.Path)),
					"give a scope that holds it", level.Path)
			}
			if !p.mayLift(level.Path) {
				p.warn("%s above it is raised from %s to %s as well: the others in it could use that too", quoted(level.Path), cpus(quota), cpus(want))
			}
		}
		demand = want
		l := level.Limit
		l.Quota = time.Duration(want * float64(l.Period)).Round(time.Microsecond)
		if err := l.Check(); err != nil {
			return p.refuse(err.Error(), "choose a larger limit")
		}
		p.setLimit(level.Path, l, fmt.Sprintf("limit from %s to %s", cpus(quota), cpus(want)))
	}
	p.expectQuota(limit, to)
	return nil
}

// raised is the new limit that was asked for.
func (p *planner) raised(limit float64) (float64, error) {
	to, factor := p.r.To, p.r.Factor
	switch {
	case to < 0 || factor < 0:
		return 0, p.refuse("a negative limit makes no sense", "")
	case to == 0 && factor == 0:
		to = 2 * limit
	case to == 0:
		to = factor * limit
	}
	if to <= limit+epsilon {
		return 0, p.refuse(fmt.Sprintf("%s is no more than its limit of %s", cpus(to), cpus(limit)), "give a larger one")
	}
	if n := float64(p.f.Machine.Online().Size()); to > n+epsilon {
		return 0, p.refuse(fmt.Sprintf("%s is more than the %s of this host: that is no limit", cpus(to), cpus(n)),
			"try --remedy weight, which says so, or a smaller --to")
	}
	return to, nil
}
