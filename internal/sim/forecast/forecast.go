package forecast

import (
	"fmt"
	"math"
	"time"
)

// Bounds of Options.
const (
	MaxSeeds    = 100
	MaxLoad     = 100.0
	maxHostLoad = 2.0
)

// Options of Make.
type Options struct {
	// Seeds is how many runs each row is the sum of, with as many phases and placements; the first one is Seed.
	Seeds int
	Seed  uint64
	// HostLoad is a second load of the host beside the recorded one, as a share of its CPUs; 0: none.
	HostLoad float64
	// CPUs to pin to; 0: the limit rounded up.
	CPUs int
	// Objective is what must be kept; nil: no worse than it is.
	Objective *Objective
	// Loads are the arrivals, from and to, between which it is looked for where the objective breaks; 0: not looked for.
	From, To float64
	// Smallest: the smallest limit that keeps what there is is looked for; with an objective it always is.
	Smallest    bool
	Calibration Calibration
	// Each calls do with 0 to n-1, in any order, also at once; nil: one after the other. It gives an error to stop early.
	Each func(n int, do func(i int) error) error
}

// Forecast is what each remedy would do.
type Forecast struct {
	Target    string
	Kernel    string
	Window    time.Duration
	Limit     float64 // in CPUs
	CPUs      int     // of the host
	Objective *Objective
	Check     SelfCheck
	Rows      []Row
	// Cheapest is the index of the row, of those at the recorded load, of the cheapest remedy that keeps the objective; -1:
	// none does. Sure: within its error, too; without an objective there is no bound to be sure of.
	Cheapest int
	Sure     bool
	// SmallestLimit keeps the objective, or what there is; so does SmallestNarrow, never being wider than it. nil: none
	// does, or it was not looked for.
	SmallestLimit, SmallestNarrow *float64
	Notes                         []string
}

// Row is one remedy at one load of the host.
type Row struct {
	Remedy     Remedy
	HostLoad   float64 // 0: as recorded
	Refused    string  // why it cannot be; "" else, and then there are:
	Figures    Figures
	Reserved   *float64 // CPUs; nil: none, and nothing bounds what it uses
	Price      string
	Neighbours *Neighbours // nil: there are none, or this is the row that they are compared with
	Error      *Error      // nil: none yet
	Meets      bool        // the objective, or is no worse than none
	// BreaksAt is the least load at which the objective is not kept (without one: at which it is worse than what was
	// recorded), CollapsesAt at which work is left over, each to a sixteenth of the step between two loads that are tried;
	// nil: at none, or not tried.
	BreaksAt, CollapsesAt *float64
}

// Make forecasts. Errors are options out of bounds, and those of the simulator.
func Make(l *Load, o Options) (*Forecast, error) {
	if err := o.check(l); err != nil {
		return nil, err
	}
	f := &Forecast{
		Target: l.Target, Kernel: l.Kernel, Window: l.Window, Limit: l.Limit, CPUs: l.Scenario.Host.CPUs,
		Objective: o.Objective, Cheapest: -1, Notes: l.Notes,
	}
	m := &maker{l: l, o: o, f: f}
	hostLoads := []float64{0}
	if o.HostLoad > 0 {
		hostLoads = append(hostLoads, o.HostLoad)
	}
	for _, load := range hostLoads {
		if err := m.rows(load); err != nil {
			return nil, err
		}
	}
	m.choose()
	if o.From > 0 {
		if err := m.sweep(); err != nil {
			return nil, err
		}
	}
	if o.Smallest || o.Objective != nil {
		if err := m.smallest(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (o *Options) check(l *Load) error {
	if o.Seeds < 1 || o.Seeds > MaxSeeds {
		return fmt.Errorf("%d seeds: give 1 to %d", o.Seeds, MaxSeeds)
	}
	if o.HostLoad < 0 || o.HostLoad > maxHostLoad || math.IsNaN(o.HostLoad) {
		return fmt.Errorf("a host load of %.3g: give a share from 0 to %g", o.HostLoad, maxHostLoad)
	}
	if o.From != 0 || o.To != 0 {
		if !(o.From > 0 && o.From <= o.To && o.To <= MaxLoad) {
			return fmt.Errorf("loads from %g to %g: give two factors above 0, the smaller one first, up to %g", o.From, o.To, MaxLoad)
		}
	}
	if o.Objective != nil && o.Objective.Pool != "" {
		for _, p := range l.Pools {
			if p.Name == o.Objective.Pool {
				return nil
			}
		}
		return &UnknownPool{o.Objective.Pool, l.PoolNames()}
	}
	return nil
}

// UnknownPool is a pool that the recording does not have.
type UnknownPool struct {
	Name string
	Has  []string
}

func (u *UnknownPool) Error() string {
	return fmt.Sprintf("pool %q: the recording has %q", u.Name, u.Has)
}

// PoolNames are those of the load's pools.
func (l *Load) PoolNames() []string {
	var all []string
	for _, p := range l.Pools {
		all = append(all, p.Name)
	}
	return all
}

// maker is a forecast under way.
type maker struct {
	l    *Load
	o    Options
	f    *Forecast
	none []Result // of the row "none", at the recorded load
}

// trials runs a remedy with all seeds, several remedies at once.
func (m *maker) trials(of []Trial) ([]Result, error) {
	results := make([]Result, len(of))
	do := func(i int) (err error) {
		results[i], err = m.l.Run(of[i])
		return err
	}
	if m.o.Each != nil {
		return results, m.o.Each(len(of), do)
	}
	for i := range of {
		if err := do(i); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// rows forecasts all remedies at one load of the host.
func (m *maker) rows(hostLoad float64) error {
	remedies := m.l.Remedies(m.o.CPUs)
	var trials []Trial
	for _, r := range remedies {
		for seed := range m.o.Seeds {
			trials = append(trials, Trial{Remedy: r, HostLoad: hostLoad, Load: 1, Seed: m.o.Seed + uint64(seed)})
		}
	}
	all, err := m.trials(trials)
	if err != nil {
		return err
	}
	var left []Result // by "none", at this load of the host
	for i, r := range remedies {
		results := all[i*m.o.Seeds : (i+1)*m.o.Seeds]
		row := Row{Remedy: r, HostLoad: hostLoad}
		if err := results[0].Refused; err != nil {
			row.Refused = err.Error()
			m.f.Rows = append(m.f.Rows, row)
			continue
		}
		row.Figures, row.Reserved = m.l.figures(results), m.l.Reserved(r)
		if r.Name == None {
			left = results
			if hostLoad == 0 {
				m.none = results
				m.f.Check = m.l.selfCheck(row.Figures, m.objective().Pool)
			}
		} else {
			row.Neighbours = m.l.neighbours(results, left)
		}
		if !r.Modelled() {
			check := m.f.Check
			if r.limitless() {
				check = check.unthrottled()
			}
			row.Error = m.l.errorOf(results, check, m.objective(), m.o.Calibration[r.Name])
		}
		row.Meets = m.meets(results)
		row.Price = m.l.price(&row, m.l.figures(left))
		m.f.Rows = append(m.f.Rows, row)
	}
	return nil
}

// objective is what latencies are judged by where the user has not said.
func (m *maker) objective() Objective {
	if m.o.Objective != nil {
		return *m.o.Objective
	}
	return Objective{Quantile: 0.99}
}

// neighbours are what others lose against leaving it; nil: there are none.
func (l *Load) neighbours(results, left []Result) *Neighbours {
	if len(l.others) == 0 || left == nil {
		return nil
	}
	sum := func(of []Result) (unfinished float64, p99 *float64) {
		times := newTimes()
		for i := range of {
			merge(&times, &of[i].Others)
		}
		return float64(times.Unfinished) / float64(len(of)), times.Response.Quantile(0.99)
	}
	now, p99 := sum(results)
	before, was := sum(left)
	return &Neighbours{Lost: time.Duration(now - before), P99: p99, Before: was}
}
