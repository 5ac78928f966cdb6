package remedy

import (
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Weight takes the quota away and leaves only the weight.
const Weight = Kind(forecast.Weight)

// weight is the row of Weight.
var weight = Remedy{
	Kind:         Weight,
	Settings:     []Setting{{Flag: "weight-from-limit"}},
	Effects:      []*forecast.Effect{forecast.WeightEffect},
	MayGrantMore: true,
	row: func(Request, forecast.Container) (forecast.Remedy, bool) {
		return forecast.Remedy{Name: forecast.Weight}, true
	},
	plan: (*planner).weight,
}

// weight takes the quota off and leaves the weight to share the CPUs.
func (p *planner) weight() error {
	path := p.target.Group.Path
	limit, limited, _ := cgroup.Effective(p.levels())
	if !limited {
		return p.refuse("neither it nor an ancestor has a quota", "")
	}
	width := p.hostCPUs()
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
	if now := p.f.Groups[path].Shares; p.r.WeightFromLimit && now > 0 {
		shares := uint64(limit*cgroup.DefaultShares + 0.5)
		p.setShares(path, now, shares, "a weight like its limit of "+text.CPUs(limit))
	}
	p.warn("nothing bounds it but the weights of the others: it may use up to %s", text.CPUs(width))
	return nil
}
