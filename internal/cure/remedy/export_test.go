package remedy

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Sample is a remedy of tests, as one value: it halves the period.
func Sample(effect *forecast.Effect) Remedy {
	return Remedy{
		Kind: "sample", Settings: []Setting{{Flag: "sample-depth", needs: func(features.Report) (bool, string) { return true, "always" }}},
		Effects: []*forecast.Effect{effect}, MayGrantMore: true, Merit: &Merit{Rank: -1, Why: "it is a sample"},
		here: func(r features.Report) (bool, string) { return r.Root, "as root" },
		plan: func(p *planner) error {
			l := p.f.Groups[p.target.Group.Path].Limit
			l.Period, l.Quota = l.Period/2, l.Quota/2
			p.setLimit(p.target.Group.Path, l, "sampled")
			p.plan.Parameters[paramTo] = "1.5"
			return nil
		},
		parameters: []string{paramTo}, needs: []string{paramTo},
	}
}

// With adds a row to the table until undo is called.
func With(r Remedy) (undo func()) {
	was := table
	table = append(All(), r)
	return func() { table = was }
}

// Modelled is a host of 4 CPUs on which the container /web has a limit of 1 CPU. apply carries a plan out there.
func Modelled(t *testing.T) (facts func() hoststate.Facts, web container.Container, apply func(Plan)) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	h.make("/web")
	h.limit("/web", 1)
	web = h.run("/web", 10)
	return h.facts, web, func(p Plan) { h.apply(p) }
}

// Everything is a host on which every remedy can be applied.
var Everything = everything
