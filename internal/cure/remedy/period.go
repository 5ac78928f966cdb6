package remedy

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
)

// defaultPeriod is that of Period: a fifth of the kernel's default, and the one that forecasts combine with a burst.
const defaultPeriod = bandwidth.DefaultPeriod / 5

// slice is how much of a quota one CPU takes at once (sched_cfs_bandwidth_slice_us, by default).
const slice = 5 * time.Millisecond

// Period keeps the limit and refills its quota more often, so that each stop is shorter, or less often, so that a burst of work fits into
// one quota (seed 000, period tuning).
const Period = Kind(forecast.Period)

// period is the row of Period.
var period = Remedy{
	Kind:        Period,
	Settings:    []Setting{{Flag: "period"}},
	Effects:     []*forecast.Effect{forecast.PeriodEffect},
	ShowsDemand: true,
	request: func(row forecast.Remedy, r *Request) string {
		r.Period = row.Period
		return ""
	},
	row: func(r Request, _ forecast.Container) (forecast.Remedy, bool) {
		return forecast.Remedy{Name: forecast.Period, Period: r.periodAsked()}, true
	},
	plan: (*planner).period,
}

// periodAsked is the period that was asked for, or the default.
func (r Request) periodAsked() time.Duration {
	if r.Period > 0 {
		return r.Period
	}
	return defaultPeriod
}

// halfWritten refuses another period where the container's owner resizes it, and nothing takes ours back before: see OtherPeriods.
func (p *planner) halfWritten(asked time.Duration) error {
	if !p.r.Room || p.f.CPUVersion != cgroup.V1 || asked == 0 || asked == p.f.Groups[p.target.Group.Path].Limit.Period {
		return nil
	}
	return p.refuse("its owner resizes it, and on cgroup v1 a resize under another period may leave it with a part of its limit",
		"run the agent where the runtime has NRI: it takes the period back before a resize")
}

// period gives the container, and the ancestor whose quota binds it, the same limit in another period; a longer one each level in reach.
func (p *planner) period() error {
	limit, limited, at := cgroup.Effective(p.levels())
	if !limited {
		return p.refuse("neither it nor an ancestor has a quota", "")
	}
	asked := p.r.periodAsked()
	if p.f.Groups[at].Limit.Period == asked {
		return p.refuse(fmt.Sprintf("its period is %v already", asked), "give another one with --period")
	}
	if err := p.mayChange(at); err != nil {
		return err
	}
	if err := p.halfWritten(asked); err != nil {
		return err
	}
	for _, level := range p.levels() {
		quota, has := level.Limit.Bound()
		concerned := level.Path == at || level.Path == p.target.Group.Path
		inReach := concerned || p.mayLift(level.Path) && p.f.inScope(level.Path)
		if !has || !inReach || !forecast.TakesPeriod(level.Limit, asked, concerned) {
			p.keepLimit(level.Path)
			continue
		}
		want := p.inPeriod(level.Path, level.Limit, asked)
		if err := want.CheckBounds(); err != nil {
			return p.refuse(err.Error(), "choose a period of 1 ms to 1 s that leaves a quota of 1 ms at least")
		}
		p.shows(level.Limit, want)
		p.setLimit(level.Path, want, fmt.Sprintf("the same limit of %s, refilled every %v", text.CPUs(quota), asked))
	}
	if quota := time.Duration(limit * float64(asked)); quota < slice {
		p.warn("a quota of %v is less than the %v that one CPU takes at once: few CPUs may hold all of it",
			quota.Round(100*time.Microsecond), slice)
	}
	return nil
}
