package forecast

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Names of the remedies in rows, in the order of the table. Those that a scenario can have are named there.
const (
	None   = "none"
	Pin    = string(scenario.Pin)
	Narrow = string(scenario.Narrow)
	Burst  = string(scenario.Burst)
	Period = string(scenario.Period)
	Weight = string(scenario.Weight)
	Raise  = string(scenario.Raise)
	Pools  = "pools"
	Shards = "shards"
	Budget = "budget"
	// Limit is the quota alone, in Forecast.Priced.
	Limit = "limit"
)

// Remedy is one setting to forecast.
type Remedy struct {
	Name string
	// CPUs is the number of CPUs of Pin, of threads of Pools, of permits of Budget, and of CPUs of Narrow (0: the limit rounded
	// up).
	CPUs int
	// Burst is that of Burst, and of a Narrow that keeps its period (0: its period is short). Period is that of Period,
	// and of a Burst with a shorter period (0: as it is).
	Burst, Period time.Duration
	// Credit is the CPU time that a Narrow by sched_ext saves (0: by a cpuset, which saves none).
	Credit time.Duration
	// Factor multiplies the limit for Raise, and the number of shards for Shards.
	Factor float64
	// Pool is the pool of Pools, as an index in Load.Pools, or AllPools.
	Pool int
	// Limit is the limit in CPUs that is set before, without a burst; 0: it stays as recorded.
	Limit float64
	of    *Effect // nil: the effect of that name
}

// AllPools resizes all pools together that have more threads than the limit has CPUs.
const AllPools = -1

// Modelled reports whether other threads take the work than in the recording, so that the row is no replay.
func (r Remedy) Modelled() bool { return r.effect().Modelled }

// InCode reports whether the row is a change of the program's code, that no plan can do.
func (r Remedy) InCode() bool { return r.effect().InCode }

// OfService reports whether only the owners of the service can do it.
func (r Remedy) OfService() bool { return r.Modelled() || r.InCode() }

// Change orders remedies by how much they change for others; larger is more. Of two that differ by their period the one that leaves it
// changes least, then the shorter one: the longer a period, the more of its CPU time others feel at once.
func (r Remedy) Change() int {
	return r.effect().Change<<periodBits + bits.Len64(uint64(r.Period/time.Millisecond))
}

// periodBits has room for the length of bandwidth.MaxPeriod in ms.
const periodBits = 4

// remedies returns the rows of a forecast: leaving it, those of the effects, and settings of the service. cpus is the
// number of CPUs to pin to; 0: the limit rounded up. schedExt says that the kernel can narrow by sched_ext.
func (l *Load) remedies(effects []*Effect, cpus int, schedExt bool) []Remedy {
	container := Container{Limit: l.limit, Quota: l.recordedScenario.Cgroups[l.binding].Limit, CPUs: cpus, SchedExt: schedExt}
	if container.CPUs <= 0 {
		container.CPUs = int(math.Ceil(l.limit))
	}
	tried := []Remedy{{Name: None}}
	if effects == nil {
		effects = Effects()
	}
	for _, e := range effects {
		for _, r := range e.Rows(container) {
			r.of = e
			tried = append(tried, r)
		}
	}
	tried = append(append(tried, l.resized()...), l.budgeted()...)
	return append(tried, Remedy{Name: Shards, Factor: 0.5}, Remedy{Name: Shards, Factor: 2})
}

// scenarioWith returns the recorded scenario with a remedy in force. The error says why the remedy cannot be
// in force.
func (l *Load) scenarioWith(r Remedy) (scenario.Scenario, error) {
	s := l.recordedScenario
	s.Cgroups = slices.Clone(s.Cgroups)
	if r.Limit > 0 {
		limited, err := limitedTo(s, Cgroups{l.container, l.binding, l.pods}, r.Limit)
		if err != nil {
			return s, err
		}
		s = limited
	}
	if simulate := r.effect().Simulate; simulate != nil {
		simulate(&s, Cgroups{l.container, l.binding, l.pods}, r)
	}
	remedied, refused := s.Remedied()
	if refused != nil {
		return s, fmt.Errorf("%s", refused.Why)
	}
	return remedied, nil
}

// reserved is how many CPUs a remedy takes away from others for good: the CPUs of a pin, or the limit of a
// quota. nil: nothing is reserved, and nothing bounds the use.
func (l *Load) reserved(r Remedy) *float64 {
	if granted := r.effect().Granted; granted != nil {
		return granted(l.limit, r)
	}
	return new(l.limit)
}

// tested returns the residual of a remedy alone. None was tested of two remedies at once, nor of a narrow with credit.
func (r Remedy) tested(c Calibration) Residual {
	if r.Name == Burst && r.Period > 0 || r.Credit > 0 || r.parts() != nil {
		return Residual{}
	}
	return c[r.Name]
}

// keepsPeriods reports whether periods go on as they were: a kernel that gets another quota or burst keeps its timer
// (tg_set_cfs_bandwidth). So
// such a row differs from leaving it by its quota alone, and not by when periods happen to begin.
func (r Remedy) keepsPeriods() bool {
	return r.Name == None || r.Name == Raise || r.Name == Burst && r.Period == 0
}

// Text is the remedy for people. limit is that of the container, in CPUs.
func (r Remedy) Text(limit float64) string {
	if shown := r.effect().Text; shown != nil {
		return shown(limit, r)
	}
	return r.Name
}

// Parameters returns a remedy's parameters as JSON shows them. The names have the units.
func (r Remedy) Parameters() map[string]any {
	if parameters := r.effect().Parameters; parameters != nil {
		return parameters(r)
	}
	return map[string]any{}
}
