package remedy

import (
	"fmt"
	"math"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/widthcap"
)

// viaSchedExt reports whether narrow is by the scheduler of sched_ext. can says
// that it can run here.
func (r Request) viaSchedExt(can bool) bool {
	switch r.Via {
	case ViaSchedExt:
		return true
	case ViaAuto:
		return can
	}
	return r.Via == "" && (r.Cap > 0 || r.Credit > 0)
}

// capped plans a cap of the target's width. Its quota stays as it is: the kernel
// does not enforce it on threads that a BPF scheduler runs, and enforces it at
// once when the scheduler is gone, for whatever reason.
func (p *planner) capped() error {
	if !p.f.SchedExt.Can {
		return p.refuse("it cannot be narrowed by sched_ext: "+p.f.SchedExt.Why, "--via auto uses a cpuset where it must")
	}
	if p.r.Burst > 0 || p.r.Period > 0 || p.r.Immovable || p.r.Mems || p.r.Reserve != nil {
		return p.refuse("a cap of sched_ext has no burst, no period and no CPUs of its own",
			"leave --burst, --period, --stays, --mems and --reserve out, or use --via cpuset")
	}
	c, err := p.capOf()
	if err != nil {
		return err
	}
	path := p.target.Group.Path
	p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindWidth, Op: change.OpSet, Controller: cgroup.CPU,
		Path: path, File: widthcap.File, To: c.String(), Why: "as wide as its limit, wider on saved credit"})
	p.plan.Parameters[paramCap] = c.String()
	p.capAncestors(c)
	p.warn("a BPF scheduler of ours (sched_ext) runs then; its quota stays written and is enforced again as soon as the scheduler ends")
	return nil
}

// capAncestors gives the ancestors with a quota a cap of the same size, with as
// much credit as the target has at least: the scheduler keeps their quotas, and
// would keep the target from being wide.
func (p *planner) capAncestors(of widthcap.Cap) {
	for _, level := range p.levels()[1:] {
		quota, limited := level.Limit.Bound()
		if !limited {
			continue
		}
		if !p.mayLift(level.Path) || !p.f.inScope(level.Path) {
			p.skip(level.Path, fmt.Sprintf("the scheduler keeps its limit of %s without more credit: it is neither a "+
				"pod's nor below a cgroup that you named", text.CPUs(quota)))
			continue
		}
		c := widthcap.Of(quota)
		c.Credit = max(c.Credit, of.Credit)
		p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindWidth, Op: change.OpSet, Controller: cgroup.CPU,
			Path: level.Path, File: widthcap.File, To: c.String(), Why: "its limit, with the credit of what is below it"})
	}
}

// capOf is the cap that is asked for.
func (p *planner) capOf() (widthcap.Cap, error) {
	limit, limited, at := cgroup.Effective(p.levels())
	c := widthcap.Of(limit)
	asked := p.r.Cap
	if asked == 0 {
		asked = float64(p.r.CPUs)
	}
	switch {
	case asked == 0 && !limited:
		return c, p.refuse("it has no limit to be held to", "give one with --cpus")
	case asked > 0:
		c = widthcap.Of(asked)
	}
	if p.r.Credit > 0 {
		c.Credit = p.r.Credit
	}
	switch online := p.hostCPUs(); {
	case c.CPUs > online:
		return c, p.refuse(fmt.Sprintf("a cap of %s is above the %s of this host", text.CPUs(c.CPUs),
			text.CPUs(online)), "leave --cpus out, or give fewer")
	case limited && c.CPUs > limit+epsilon:
		return c, p.refuse(fmt.Sprintf("%s are more than its limit of %s at %s", text.CPUs(c.CPUs), text.CPUs(limit),
			text.Name(at)), "leave --cpus out, or raise the limit first")
	case limited && math.Abs(c.CPUs-limit) > 0.001:
		p.warn("%s are fewer than its limit of %s", text.CPUs(c.CPUs), text.CPUs(limit))
	}
	if err := c.Check(); err != nil {
		return c, p.refuse(err.Error(), "")
	}
	return c, nil
}
