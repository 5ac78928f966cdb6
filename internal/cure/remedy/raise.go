package remedy

import (
	"fmt"
	"math"
	"strconv"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Raise gives a larger limit.
const Raise = Kind(forecast.Raise)

// raise is the row of Raise.
var raise = Remedy{
	Kind:         Raise,
	Settings:     []Setting{{Flag: "factor"}, {Flag: "to"}},
	Effects:      []*forecast.Effect{forecast.RaiseEffect},
	MayGrantMore: true,
	LargerLimit:  true,
	ShowsDemand:  true,
	Merit:        &Merit{Rank: 3, Why: "a larger limit is what is left"},
	request: func(row forecast.Remedy, r *Request) string {
		r.Factor = row.Factor
		return ""
	},
	row: func(r Request, c forecast.Container) (forecast.Remedy, bool) {
		asked := forecast.Remedy{Name: forecast.Raise, Factor: r.factor(c.Limit)}
		return asked, asked.Factor > 0
	},
	plan:       (*planner).raise,
	parameters: []string{paramTo, ParamStartup},
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
	p.plan.Parameters[paramTo] = strconv.FormatFloat(to, 'g', 6, 64)
	if p.f.Pod != nil {
		return p.raisePod(limit, to)
	}
	if p.target.PodUID != "" {
		p.warn("its pod's spec keeps %s, and the kubelet's next resize writes that again "+
			"(the chart's resize.enabled raises the spec)",
			text.CPUs(limit))
	}
	more, demand := to-limit, to
	if own, ok := p.f.Groups[path].Limit.Bound(); ok {
		more, demand = max(0, to-own), max(to, own)
	} else if at == path {
		return p.refuse("its limit cannot be told", "")
	}
	onPath, below := "", 0.0
	for i, level := range p.levels() {
		quota, limitedHere := level.Limit.Bound()
		if i > 0 {
			width, _ := p.others(level.Path, onPath)
			demand = min(demand+width, p.hostCPUs())
		}
		onPath = level.Path
		if !limitedHere || quota >= demand-epsilon && quota >= below && i > 0 || quota >= to && i == 0 {
			p.keepLimit(level.Path)
			continue
		}
		want := to
		if i > 0 {
			want = max(to, min(demand, quota+more))
			if quota >= want-epsilon && quota >= below {
				p.keepLimit(level.Path)
				demand = quota
				continue
			}
			if !p.f.inScope(level.Path) {
				return p.refuse(fmt.Sprintf("the quota of %s at %s would still bind, and lies outside the scope",
					text.CPUs(quota), text.Name(level.Path)),
					"give a scope that holds it", level.Path)
			}
			if !p.mayLift(level.Path) {
				p.warn("%s above it is raised from %s to %s as well: the others in it could use that too",
					text.Name(level.Path), text.CPUs(quota), text.CPUs(want))
			}
		}
		demand = want
		l := level.Limit
		l.Quota = bandwidth.QuotaOf(want, l.Period)
		l = p.covering(level.Path, l, below)
		below, _ = l.Bound()
		if err := l.CheckBounds(); err != nil {
			return p.refuse(err.Error(), "choose a larger limit")
		}
		p.setLimit(level.Path, l, fmt.Sprintf("limit from %s to %s", text.CPUs(quota), text.CPUs(want)))
	}
	return nil
}

// factor is by how much a limit is multiplied.
func (r Request) factor(limit float64) float64 {
	switch {
	case r.To > 0:
		return r.To / limit
	case r.Factor > 0:
		return r.Factor
	}
	return 2
}

// raised is the new limit that was asked for.
func (p *planner) raised(limit float64) (float64, error) {
	to := p.r.factor(limit) * limit
	if p.r.Starting > 0 {
		if to = math.Ceil(limit - epsilon); to <= limit+epsilon {
			return 0, p.refuse(fmt.Sprintf("its limit is %s, and "+
				"a runtime that sizes itself while it starts would see more of them",
				text.CPUs(limit)), "only a limit with a fraction can be raised for a start")
		}
	}
	if to <= limit+epsilon {
		return 0, p.refuse(fmt.Sprintf("%s is no more than its limit of %s", text.CPUs(to), text.CPUs(limit)), "give a larger one")
	}
	if n := p.hostCPUs(); to > n+epsilon {
		return 0, p.refuse(fmt.Sprintf("%s is more than the %s of this host: that is no limit", text.CPUs(to), text.CPUs(n)),
			"try --remedy weight, which says so, or a smaller --to")
	}
	return to, nil
}
