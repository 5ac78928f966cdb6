package realrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

const (
	// settle is from when all processes wait to the beginning, in which the load
	// generators start.
	settle = 300 * time.Millisecond
	// slack is what a run may take beyond its duration before its children end by
	// themselves.
	slack = 2 * time.Minute
)

// job is one workload that runs.
type job interface {
	pid() int
	workload() string // its name; its process's CPU time is that one's
	// begin is the scenario's beginning; called shortly before or at it.
	begin(ctx context.Context, at time.Duration) error
	// end returns the measurements, after the scenario's end. A collector's figures
	// come with its service's.
	end() (map[string]scenario.WorkloadOutcome, []string, error)
	stop() error
}

// Run runs a scenario once, and removes all that it made, also when ctx ends or
// something fails. An error of type [*NotMeasurable] says that this host or
// user cannot run it.
func Run(ctx context.Context, s scenario.Scenario, o Options) (result Result, err error) {
	if s, err = required(s, o); err != nil {
		return result, err
	}
	b, err := open(&s, o)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, b.sandbox.Remove()) }()
	result.Notes = append(notReproduced(&s), b.sandbox.Leftovers.Notes()...)
	jobs, err := start(&s, b, o)
	join(&s, jobs)
	defer func() {
		for _, j := range jobs {
			err = errors.Join(err, j.stop())
		}
	}()
	if err != nil {
		return result, err
	}
	outcome, notes, err := measure(ctx, &s, b, jobs, o)
	result.Outcome, result.Notes = outcome, append(result.Notes, notes...)
	return result, err
}

// required gives the scenario with its remedies carried out, or an error where this host cannot run it. It makes nothing.
func required(s scenario.Scenario, o Options) (scenario.Scenario, error) {
	remedied, refused := s.Remedied()
	if refused != nil {
		return s, refused
	}
	s = remedied
	version, _ := o.Host.Version(cgroup.CPU)
	if err := checkSupported(&s, version == cgroup.V2); err != nil {
		return s, err
	}
	if err := checkLoads(&s); err != nil {
		return s, err
	}
	meminfo, err := readMeminfo()
	if err != nil {
		return s, err
	}
	return s, checkMemory(&s, meminfo)
}

// Plan is what a run would make, in the order of the scenario.
type Plan struct {
	Cgroups   []PlannedCgroup   `json:"cgroups"`
	Workloads []PlannedWorkload `json:"workloads"`
	// Notes say what of the file would not matter.
	Notes []string `json:"notes"`
}

// PlannedCgroup is one cgroup with its limit.
type PlannedCgroup struct {
	Name   string `json:"name"`
	Parent string `json:"parent"` // "": the run's own
	// LimitCPUs is quota / period; null: no limit.
	LimitCPUs     *float64 `json:"limit_cpus"`
	PeriodSeconds *float64 `json:"period_seconds"`
	BurstSeconds  *float64 `json:"burst_seconds"`
	CPUs          string   `json:"cpus"` // "": the parent's
}

// PlannedWorkload is one workload with its threads.
type PlannedWorkload struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Cgroup  string `json:"cgroup"` // "": the run's own
	Threads int    `json:"threads"`
}

// Check says what Run would make, and makes nothing. Its errors are those of Run that come before the first write.
func Check(s scenario.Scenario, o Options) (Plan, error) {
	p := Plan{Cgroups: []PlannedCgroup{}, Workloads: []PlannedWorkload{}, Notes: []string{}}
	s, err := required(s, o)
	if err != nil {
		return p, err
	}
	have, err := sandbox.Usable(o.Host, o.Scope)
	if err == nil {
		err = enough(have, s.Host.CPUs)
	}
	if err != nil {
		return p, err
	}
	named := func(i int) string {
		if i < 0 {
			return ""
		}
		return s.Cgroups[i].Name
	}
	for _, c := range s.Cgroups {
		planned := PlannedCgroup{Name: c.Name, Parent: named(c.Parent), CPUs: c.CPUs.String()}
		if c.Limit.Limited() {
			limit, period, burst := c.Limit.CPUs(), c.Limit.Period.Seconds(), c.Limit.Burst.Seconds()
			planned.LimitCPUs, planned.PeriodSeconds, planned.BurstSeconds = &limit, &period, &burst
		}
		p.Cgroups = append(p.Cgroups, planned)
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		p.Workloads = append(p.Workloads, PlannedWorkload{Name: w.Name, Kind: string(w.Kind), Cgroup: named(w.Cgroup),
			Threads: w.AllThreads()})
	}
	p.Notes = append(p.Notes, notReproduced(&s)...)
	return p, nil
}

// start starts all processes, each in its cgroup, waiting. On failure it returns the
// started ones too, so that the caller stops them.
func start(s *scenario.Scenario, b *testbed, o Options) (jobs []job, err error) {
	for i := range s.Workloads {
		var j job
		switch w := &s.Workloads[i]; w.Kind {
		case scenario.GC:
			continue // part of its service
		case scenario.Service:
			j, err = startService(s, i, o)
		case scenario.JVM:
			j, err = startJVM(s, w, o)
		default:
			j, err = startThreads(s, w, b, o)
		}
		if err != nil {
			return jobs, fmt.Errorf("workloads.%s: %w", s.Workloads[i].Name, err)
		}
		jobs = append(jobs, j)
		group, _ := b.of(s, &s.Workloads[i])
		if err := group.Attach(j.pid()); err != nil {
			return jobs, err
		}
	}
	return jobs, nil
}

// look is one reading of all counters.
type look struct {
	at    time.Duration
	stats []cgroup.Stat
	cpu   []time.Duration // of each job's process
}

func (b *testbed) look(jobs []job) (l look, err error) {
	l.at = workload.Now()
	if l.stats, err = b.stats(); err != nil {
		return l, err
	}
	for _, j := range jobs {
		used, err := processTime(j.pid())
		if err != nil {
			return l, err
		}
		l.cpu = append(l.cpu, used)
	}
	return l, nil
}

// processTime is the CPU time of another process: its own CPU clock
// (clock_getcpuclockid(3)).
func processTime(pid int) (time.Duration, error) {
	const cpuClockSched = 2 // CPUCLOCK_SCHED, include/linux/posix-timers_types.h
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|cpuClockSched), &ts); err != nil {
		return 0, fmt.Errorf("process %d ended before its time: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// measure runs the scenario's duration.
func measure(ctx context.Context, s *scenario.Scenario, b *testbed, jobs []job, o Options) (out scenario.Outcome,
	notes []string, err error) {
	if err := prepare(ctx, jobs); err != nil {
		return out, nil, err
	}
	var watching Watching
	var unmeasured []string
	if o.Probe != nil {
		watching, err = o.Probe.Watch(b.named(s))
		switch refused := new(probe.Unavailable); {
		case errors.As(err, &refused):
			watching, unmeasured = nil, []string{"width and stopped time are not measured: " + refused.Error()}
		case err != nil:
			return out, nil, err
		default:
			defer watching.Close()
		}
	}
	at := workload.Now() + settle
	for _, j := range jobs {
		if early, ok := j.(*serviceJob); ok {
			early.load(ctx, at)
		}
	}
	if err := clock.Sleep(ctx, at-workload.Now()); err != nil {
		return out, nil, err
	}
	first, err := b.look(jobs)
	if err == nil && watching != nil {
		err = watching.Begin()
	}
	if err != nil {
		return out, nil, err
	}
	for _, j := range jobs {
		if err := j.begin(ctx, at); err != nil {
			return out, nil, err
		}
	}
	if err := clock.Sleep(ctx, first.at+s.Duration-workload.Now()); err != nil {
		return out, nil, err
	}
	last, err := b.look(jobs)
	var measured map[string]Measured
	if err == nil && watching != nil {
		measured, err = watching.End()
	}
	if err != nil {
		return out, nil, err
	}
	out, notes, err = outcome(s, jobs, first, last, measured)
	return out, append(unmeasured, notes...), err
}

// prepare lets services start their threads before the beginning.
func prepare(ctx context.Context, jobs []job) error {
	for _, j := range jobs {
		if early, ok := j.(interface{ prepare() error }); ok {
			if err := early.prepare(); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// NotMeasurable is why a host cannot run a scenario.
type NotMeasurable = sandbox.NotMeasurable
