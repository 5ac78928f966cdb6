package forecast

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/sim/scenario"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Names of the remedies in rows, in the order of the table.
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

// Remedy is one setting to forecast.
type Remedy struct {
	Name string
	// CPUs is the number of CPUs of Pin, of threads of Pools, and of CPUs of Narrow (0: the limit rounded
	// up).
	CPUs int
	// Burst is that of Burst. Period is that of Period, and of a Burst with a shorter period (0: as it is).
	Burst, Period time.Duration
	// Factor multiplies the limit for Raise, and the number of shards for Shards.
	Factor float64
	// Pool is the pool of Pools, as an index in Load.Pools, or AllPools.
	Pool int
}

// AllPools resizes all pools together that have more threads than the limit has CPUs.
const AllPools = -1

// shortPeriod is the period of a burst that is combined with a shorter one.
const shortPeriod = 20 * time.Millisecond

// Modelled reports whether other threads take the work than in the recording, so that the row is no replay.
func (r Remedy) Modelled() bool { return r.Name == Pools || r.Name == Shards }

// remedies returns the default rows of a forecast. cpus is the number of CPUs to pin to; 0: the limit rounded
// up.
func (l *Load) remedies(cpus int) []Remedy {
	limit := l.recordedScenario.Cgroups[l.binding].Limit
	if cpus <= 0 {
		cpus = int(math.Ceil(l.limit))
	}
	all := []Remedy{{Name: None}, {Name: Pin, CPUs: cpus}, {Name: Narrow}, {Name: Burst, Burst: limit.Quota}}
	if limit.Period > shortPeriod {
		quota := time.Duration(l.limit * float64(shortPeriod)).Round(time.Microsecond)
		all = append(all, Remedy{Name: Burst, Burst: quota, Period: shortPeriod})
	}
	for _, period := range []time.Duration{10, 20, 50} {
		if p := period * time.Millisecond; p != limit.Period {
			all = append(all, Remedy{Name: Period, Period: p})
		}
	}
	all = append(all, Remedy{Name: Weight}, Remedy{Name: Raise, Factor: 1.5}, Remedy{Name: Raise, Factor: 2})
	all = append(all, l.resized()...)
	return append(all, Remedy{Name: Shards, Factor: 0.5}, Remedy{Name: Shards, Factor: 2})
}

// scenarioWith returns the recorded scenario with a remedy in force. The error says why the remedy cannot be
// in force.
func (l *Load) scenarioWith(r Remedy) (scenario.Scenario, error) {
	s := l.recordedScenario
	s.Cgroups = slices.Clone(s.Cgroups)
	at, remedy := l.binding, (*scenario.Remedy)(nil)
	switch r.Name {
	case Pin:
		at, remedy = l.container, &scenario.Remedy{Kind: scenario.Pin, CPUs: r.CPUs}
	case Narrow:
		if r.CPUs > 0 {
			s.Cgroups[at].Limit.Quota = time.Duration(r.CPUs) * s.Cgroups[at].Limit.Period
		}
		remedy = &scenario.Remedy{Kind: scenario.Narrow}
	case Burst:
		remedy = &scenario.Remedy{Kind: scenario.Burst, Burst: r.Burst}
		if of := &s.Cgroups[at].Limit; r.Period > 0 && of.Period > 0 {
			of.Quota = time.Duration(float64(of.Quota) / float64(of.Period) * float64(r.Period)).Round(time.Microsecond)
			of.Period = r.Period
		}
	case Period:
		remedy = &scenario.Remedy{Kind: scenario.Period, Period: r.Period}
	case Raise:
		remedy = &scenario.Remedy{Kind: scenario.Raise, Factor: r.Factor}
	case Weight:
		// A quota left at any level would still throttle, so all of them go.
		for up := l.container; up >= 0; up = s.Cgroups[up].Parent {
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

// reserved is how many CPUs a remedy takes away from others for good: the CPUs of a pin, or the limit of a
// quota. nil: nothing is reserved, and nothing bounds the use.
func (l *Load) reserved(r Remedy) *float64 {
	limit := l.limit
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

// tested returns the residual of a remedy alone. None was tested of two remedies at once.
func (r Remedy) tested(c Calibration) Residual {
	if r.Name == Burst && r.Period > 0 {
		return Residual{}
	}
	return c[r.Name]
}

// Text is the remedy for people. limit is that of the container, in CPUs.
func (r Remedy) Text(limit float64) string {
	switch r.Name {
	case None:
		return "leave it"
	case Pin:
		return "pin to " + text.Count(r.CPUs, "CPU")
	case Burst:
		if r.Period > 0 {
			return fmt.Sprintf("burst %v, period %v", r.Burst, r.Period)
		}
		return fmt.Sprintf("burst %v", r.Burst)
	case Period:
		return fmt.Sprintf("period %v", r.Period)
	case Raise:
		return "raise to " + text.CPUs(limit*r.Factor)
	case Pools:
		if r.Pool == AllPools {
			return fmt.Sprintf("all pools of %d", r.CPUs)
		}
		return fmt.Sprintf("pool of %d", r.CPUs)
	case Shards:
		if r.Factor < 1 {
			return "half the shards"
		}
		return "twice the shards"
	}
	return r.Name
}

// Parameters returns a remedy's parameters as JSON shows them. The names have the units.
func (r Remedy) Parameters() map[string]any {
	p := map[string]any{}
	switch r.Name {
	case Pin:
		p["cpus"] = r.CPUs
	case Burst:
		p["burst_ms"] = milliseconds(r.Burst)
		if r.Period > 0 {
			p["period_ms"] = milliseconds(r.Period)
		}
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
