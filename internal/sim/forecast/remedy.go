package forecast

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/sim/scenario"
)

// Names of remedies in rows, in the order of the table.
const (
	None   = "none"
	Pin    = "pin"
	Narrow = "narrow"
	Burst  = "burst"
	Period = "period"
	Weight = "weight"
	Raise  = "raise"
	Pools  = "pools"
	Shards = "shards"
)

// Remedy is one setting to be forecast.
type Remedy struct {
	Name string
	// CPUs of Pin; threads of Pools; of Narrow, 0: the limit rounded up.
	CPUs int
	// Burst of Burst, Period of Period.
	Burst, Period time.Duration
	// Factor of Raise, of the limit; of Shards, of their number.
	Factor float64
	// Pool of Pools, by index in Load.Pools, or AllPools.
	Pool int
}

// AllPools are those with more threads than the limit has CPUs, all resized together.
const AllPools = -1

// Modelled says whether other threads take the work than did, which is no replay.
func (r Remedy) Modelled() bool { return r.Name == Pools || r.Name == Shards }

// Remedies are what is forecast for a load where nobody asks for anything else: one row each. cpus is how many CPUs to
// pin to; 0: the limit rounded up.
func (l *Load) Remedies(cpus int) []Remedy {
	limit := l.Scenario.Cgroups[l.Binding].Limit
	if cpus <= 0 {
		cpus = int(math.Ceil(l.Limit))
	}
	all := []Remedy{{Name: None}, {Name: Pin, CPUs: cpus}, {Name: Narrow}, {Name: Burst, Burst: limit.Quota}}
	for _, period := range []time.Duration{10, 20, 50} {
		if p := period * time.Millisecond; p != limit.Period {
			all = append(all, Remedy{Name: Period, Period: p})
		}
	}
	all = append(all, Remedy{Name: Weight}, Remedy{Name: Raise, Factor: 1.5}, Remedy{Name: Raise, Factor: 2})
	all = append(all, l.resized()...)
	return append(all, Remedy{Name: Shards, Factor: 0.5}, Remedy{Name: Shards, Factor: 2})
}

// scenario is the load's scenario with a remedy in force. An error says why it cannot be.
func (l *Load) scenario(r Remedy) (scenario.Scenario, error) {
	s := l.Scenario
	s.Cgroups = slices.Clone(s.Cgroups)
	at, remedy := l.Binding, (*scenario.Remedy)(nil)
	switch r.Name {
	case Pin:
		at, remedy = l.Container, &scenario.Remedy{Kind: scenario.Pin, CPUs: r.CPUs}
	case Narrow:
		if r.CPUs > 0 {
			s.Cgroups[at].Limit.Quota = time.Duration(r.CPUs) * s.Cgroups[at].Limit.Period
		}
		remedy = &scenario.Remedy{Kind: scenario.Narrow}
	case Burst:
		remedy = &scenario.Remedy{Kind: scenario.Burst, Burst: r.Burst}
	case Period:
		remedy = &scenario.Remedy{Kind: scenario.Period, Period: r.Period}
	case Raise:
		remedy = &scenario.Remedy{Kind: scenario.Raise, Factor: r.Factor}
	case Weight:
		// No quota at or above it: one that is left would hold it all the same.
		for up := l.Container; up >= 0; up = s.Cgroups[up].Parent {
			s.Cgroups[up].Limit.Quota, s.Cgroups[up].Limit.Burst = bandwidth.NoQuota, 0
		}
	}
	s.Cgroups[at].Remedy = remedy
	remedied, refused := s.Remedied()
	if refused != nil {
		return s, fmt.Errorf("%s", refused.Why)
	}
	return remedied, nil
}

// Reserved is how many CPUs a remedy takes away from others for good: those of a pin, the limit of a quota. nil: no
// quota and no CPUs of its own, so that nothing is reserved and nothing bounds it.
func (l *Load) Reserved(r Remedy) *float64 {
	limit := l.Limit
	switch r.Name {
	case Pin:
		limit = float64(r.CPUs)
	case Raise:
		limit *= r.Factor
	case Weight:
		return nil
	}
	return &limit
}

// Parameters of a remedy, as told in JSON: the unit is in the name.
func (r Remedy) Parameters() map[string]any {
	p := map[string]any{}
	switch r.Name {
	case Pin:
		p["cpus"] = r.CPUs
	case Burst:
		p["burst_ms"] = milliseconds(r.Burst)
	case Period:
		p["period_ms"] = milliseconds(r.Period)
	case Raise, Shards:
		p["factor"] = r.Factor
	case Pools:
		p["threads"] = r.CPUs
		if r.Pool == AllPools {
			p["all_pools"] = true
		}
	}
	return p
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
