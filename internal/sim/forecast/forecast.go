package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Bounds of Options.
const (
	MaxSeeds    = 100
	MaxLoad     = 100.0
	maxHostLoad = 2.0
)

// Options of Make.
type Options struct {
	// Seeds is the number of runs per row, with as many phases and placements. Seed is the first one.
	Seeds int
	Seed  uint64
	// HostLoad adds rows for a busier host, as a share of its CPUs; 0: none.
	HostLoad float64
	// Effects are the remedies to forecast; nil: Effects().
	Effects []*Effect
	// CPUs is the number of CPUs to pin to; 0: the limit rounded up.
	CPUs int
	// SchedExt says that the kernel can narrow by sched_ext. Without it there is no such row.
	SchedExt bool
	// Objective is the latency to keep; nil: stopped time must end and latency get no worse.
	Objective *Objective
	// Quantile is judged where there is no Objective; 0: objective.DefaultQuantile.
	Quantile float64
	// From and To bound the arrivals, as factors of the recorded ones, between which Make searches for the
	// load that breaks the objective; 0: no search.
	From, To float64
	// Smallest asks for the smallest limit that is no worse than the recorded one. With an objective Make
	// always searches for it.
	Smallest bool
	// Price asks for Forecast.Priced.
	Price       bool
	Calibration Calibration
	// Each calls do with 0 to n-1, in any order and possibly concurrently; nil: one after the other. An error
	// stops it early. With context.DeadlineExceeded Make goes on with what is done: as many replays of every row, at
	// least one, or the error is *TooSlow. Notes say what was left out.
	Each func(n int, do func(i int) error) error
}

// Forecast has the predicted effect of each remedy.
type Forecast struct {
	Target string
	Path   string // of the container's cgroup, in the cpu hierarchy
	Kernel string
	Window time.Duration
	Limit  float64 // in CPUs
	// Levels are the limits under which the recording was made: the container's, its ancestors', and those of cgroups in it.
	Levels    []recording.Level
	CPUs      int // of the host
	Objective *Objective
	Check     SelfCheck
	// Judged says whose latency Row.Judged has; nil: no requests were seen, and no pool has enough responses.
	Judged *Judged
	// Kinds are the kinds of requests, of which Judged has one; nil: too few were seen. A remedy must harm none of them.
	Kinds []KindSeen
	// Languages are those of the recorded processes that have the project's library: LanguageGo, LanguageJVM.
	Languages []string
	// MostResponses is how many responses the recording has of the pool with most.
	MostResponses uint64
	Rows          []Row
	// Cheapest is the index of the row of the cheapest remedy that keeps the objective, among those at the
	// recorded load; -1: none does. Sure says that it does within its error too, or that there is no
	// objective.
	Cheapest int
	Sure     bool
	// SmallestLimit is the smallest limit that keeps the objective in Coverage of cases, or is no worse than the
	// recording. SmallestRange is from the smallest limit that may do so to that. SmallestNarrow is the smallest
	// width that does so without a quota. nil: none does, or Make did not search.
	SmallestLimit, SmallestNarrow *float64
	SmallestRange                 *Range
	// Priced has the least CPUs of each remedy; nil: Make did not search, or the replay differs from the recording.
	Priced []Priced
	// Recorded is when the recording was made.
	Recorded time.Time
	Notes    []string
	// LeftOut says what Make left out because the time was up; Notes have it too.
	LeftOut []string
}

// Row is one remedy at one load of the host.
type Row struct {
	Remedy     Remedy
	HostLoad   float64 // 0: as recorded
	Refused    string  // why the remedy cannot be in force; "": it can, and the fields below are set
	Figures    Figures
	Reserved   *float64 // CPUs; nil: nothing is reserved and nothing bounds the use
	Price      string
	Neighbours *Neighbours // nil: there are none, or this row is the base of the comparison
	Error      *Error      // nil: no error is known
	// Judged is the quantile of Forecast.Judged in milliseconds, JudgedRange its error; nil: there are too few
	// responses, or no error is known.
	Judged      *float64
	JudgedRange *Range
	// Known says how often forecasts like this one came close; nil: requests are not judged, or the row is modelled.
	Known *Known
	// JudgedP50 is the median of what is judged.
	JudgedP50 *float64
	// Kinds are the figures of Forecast.Kinds; nil: the row is modelled.
	Kinds []KindFigures
	Meets bool // keeps the objective, or is no worse than none
	// BreaksAt is the least load that breaks the objective, or without one that is worse than the recording.
	// CollapsesAt is the least load that leaves work undone. Both are exact to a sixteenth of the step
	// between two tried loads; nil: no load does, or none was tried.
	BreaksAt, CollapsesAt *float64
}

// Left is the row of leaving the container as it is, at the recorded load of the host; nil: there is none.
func (f *Forecast) Left() *Row {
	for i := range f.Rows {
		if r := &f.Rows[i]; r.Remedy.Name == None && r.HostLoad == 0 {
			return r
		}
	}
	return nil
}

// Make makes a forecast. It returns an error for options out of bounds, and those of the simulator.
func Make(l *Load, o Options) (*Forecast, error) {
	if err := o.check(l); err != nil {
		return nil, err
	}
	m, err := makeRows(l, o)
	if err != nil {
		return nil, err
	}
	m.f.Notes = slices.Concat(m.f.Notes, m.f.LeftOut)
	return m.f, nil
}

// makeRows makes a forecast whose notes lack LeftOut.
func makeRows(l *Load, o Options) (*maker, error) {
	f := &Forecast{
		Target: l.target, Path: l.path, Kernel: l.kernel, Window: l.window, Limit: l.limit, Levels: l.levels,
		CPUs: l.recordedScenario.Host.CPUs, Recorded: l.created,
		Objective: o.Objective, Cheapest: -1, Notes: l.notes, Languages: l.languages,
	}
	for _, p := range l.Pools {
		f.MostResponses = max(f.MostResponses, p.recorded.Response.Count())
	}
	m := &maker{l: l, o: o, f: f, seeds: o.Seeds}
	if err := m.warm(); err != nil {
		return nil, err
	}
	hostLoads := []float64{0}
	if o.HostLoad > 0 {
		hostLoads = append(hostLoads, o.HostLoad)
	}
	for _, load := range hostLoads {
		err := m.rows(load)
		if late := new(TooSlow); load > 0 && errors.As(err, &late) {
			m.leftOut("the rows of a fuller host are left out")
			break
		}
		if err != nil {
			return nil, err
		}
	}
	m.judge()
	m.leaveOut()
	if figures := f.Check.FailedBeside(); len(figures) > 0 {
		f.Notes = append(slices.Clone(f.Notes), "the replay of the recording differs from the recording in "+strings.Join(figures, " and ")+
			": these figures of the rows cannot be relied on; the latency is checked by itself")
	}
	if figure := f.Check.Failed(); figure != "" {
		f.Notes = append(slices.Clone(f.Notes), "the replay of the recording differs from the recording in "+figure+
			": no row can be relied on, and none is recommended by its latency")
		return m, nil
	}
	m.choose()
	if o.From > 0 {
		if err := m.unlessLate(m.sweep(), "the search for the load at which each row breaks is left out"); err != nil {
			return nil, err
		}
	}
	if o.Smallest || o.Objective != nil && !o.Price {
		if err := m.unlessLate(m.smallest(), "the search for the smallest limit is left out"); err != nil {
			return nil, err
		}
	}
	if o.Price {
		if err := m.price(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// TooSlow is the error of a forecast whose time was up before every row was replayed once.
type TooSlow struct{ Done, Of int }

func (t *TooSlow) Error() string {
	return fmt.Sprintf("the time was up after %d of %d replays; keep the recording in a file (explain --record FILE) "+
		"and forecast the file: that has no such bound", t.Done, t.Of)
}

// unlessLate returns err unless it says that the time was up: then LeftOut says so.
func (m *maker) unlessLate(err error, what string) error {
	if errors.Is(err, context.DeadlineExceeded) {
		m.leftOut(what)
		return nil
	}
	return err
}

// leftOut says what did not happen because the time was up.
func (m *maker) leftOut(what string) {
	m.f.LeftOut = append(m.f.LeftOut, "the time was up: "+what)
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

// UnknownPool is the error for a pool that the recording does not have.
type UnknownPool struct {
	Name string
	Has  []string
}

func (u *UnknownPool) Error() string {
	return fmt.Sprintf("pool %q: the recording has %q", u.Name, u.Has)
}

// PoolNames returns the names of the load's pools.
func (l *Load) PoolNames() []string {
	var all []string
	for _, p := range l.Pools {
		all = append(all, p.Name)
	}
	return all
}

// maker is the state of Make.
type maker struct {
	l    *Load
	o    Options
	f    *Forecast
	none []result // of the row "none", at the recorded load
	// asRecorded are those of the recording as it is, where the rows are without the work of a compiler; nil: none has those.
	asRecorded []result
	// unchanged are runs of what changes nothing, in other phases than the recorded one, by the remedy's name.
	unchanged map[string]measured
	all       [][]result // of each row; nil: it is refused
	// seeds is the number of runs per row at the recorded load: Options.Seeds, or fewer if the time was up.
	seeds int
	// which are the judged requests, by index in Load.requests; nil: a pool is judged.
	which []int
}

// warm has the rows be those of the program once its compiler is through, where that is near. The recording is then
// checked by replays of its own.
func (m *maker) warm() error {
	l, now, then := m.l.warmedUp()
	if l == nil {
		return nil
	}
	left := Remedy{Name: None}
	all, err := m.rounds([]Remedy{left}, 0)
	if err != nil {
		return err
	}
	m.asRecorded = all[0]
	m.f.Check = m.l.selfCheck(m.l.figures(all[0]), m.objective().Pool)
	m.l = l
	m.note("the compiler's share of the CPU time fell during the recording: the rows are of the program with %.0f %% "+
		"of it instead of %.0f %%", 100*then, 100*now)
	return nil
}

// trials runs all trials, several at once.
func (m *maker) trials(of []trial) ([]result, error) {
	results := make([]result, len(of))
	do := func(i int) (err error) {
		results[i], err = m.l.run(of[i])
		results[i].done = err == nil
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

// rounds runs the trials of all remedies at one load of the host, a round per seed, and returns the results by remedy. If
// the time is up, it returns the complete rounds.
func (m *maker) rounds(remedies []Remedy, hostLoad float64) ([][]result, error) {
	var trials []trial
	for seed := range m.o.Seeds {
		for _, r := range remedies {
			trials = append(trials, trial{remedy: r, hostLoad: hostLoad, load: 1, seed: m.o.Seed + uint64(seed)})
		}
	}
	results, err := m.trials(trials)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	rounds := m.o.Seeds
	if first := slices.IndexFunc(results, func(r result) bool { return !r.done }); first >= 0 {
		rounds = first / len(remedies)
		if rounds == 0 {
			return nil, &TooSlow{first, len(remedies)}
		}
		of := ""
		if hostLoad > 0 {
			of = " of the fuller host"
		}
		m.leftOut(fmt.Sprintf("each row%s was replayed %d of %d times, so its error is less certain", of, rounds, m.o.Seeds))
	}
	if hostLoad == 0 {
		m.seeds = rounds
	}
	of := make([][]result, len(remedies))
	for i, r := range results[:rounds*len(remedies)] {
		of[i%len(remedies)] = append(of[i%len(remedies)], r)
	}
	return of, nil
}

// rows forecasts all remedies at one load of the host.
func (m *maker) rows(hostLoad float64) error {
	remedies := m.l.remedies(m.o.Effects, m.o.CPUs, m.o.SchedExt)
	all, err := m.rounds(remedies, hostLoad)
	if err != nil {
		return err
	}
	var left []result // results of "none" at this load of the host
	for i, r := range remedies {
		results := all[i]
		row := Row{Remedy: r, HostLoad: hostLoad}
		if err := results[0].refused; err != nil {
			row.Refused = err.Error()
			m.f.Rows, m.all = append(m.f.Rows, row), append(m.all, nil)
			continue
		}
		row.Figures, row.Reserved = m.l.figures(results), m.l.reserved(r)
		if r.Name == None {
			left = results
			if hostLoad == 0 {
				m.none = results
				if m.asRecorded == nil {
					m.f.Check = m.l.selfCheck(row.Figures, m.objective().Pool)
				}
			}
		} else {
			row.Neighbours = m.l.neighbours(results, left)
		}
		if !r.Modelled() {
			check := m.f.Check
			if r.limitless() {
				check = check.unthrottled()
			}
			row.Error = m.l.errorOf(results, check, m.objective(), r.tested(m.o.Calibration))
		}
		row.Meets = m.meets(results)
		row.Price = m.l.price(&row, m.l.figures(left))
		m.f.Rows, m.all = append(m.f.Rows, row), append(m.all, results)
	}
	return nil
}

// objective returns the user's objective, or the default: the quantile of all pools that is judged.
func (m *maker) objective() Objective {
	if m.o.Objective != nil {
		return *m.o.Objective
	}
	return Objective{Objective: objective.Objective{Quantile: cmp.Or(m.o.Quantile, objective.DefaultQuantile)}}
}

// neighbours compares the neighbours under a remedy with those under none. It returns nil if there are none.
func (l *Load) neighbours(results, left []result) *Neighbours {
	if len(l.others) == 0 || left == nil {
		return nil
	}
	sum := func(of []result) (unfinished float64, p99 *float64) {
		times := newTimes()
		for i := range of {
			merge(&times, &of[i].others)
		}
		return float64(times.Unfinished) / float64(len(of)), times.Response.Quantile(objective.P99)
	}
	now, p99 := sum(results)
	before, was := sum(left)
	return &Neighbours{Lost: time.Duration(now - before), P99: p99, Before: was}
}
