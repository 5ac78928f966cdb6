package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/test/study"
)

// options of all measurements.
type options struct {
	host   *cgroup.Host
	exe    string
	keep   string // folder
	rounds int
	each   time.Duration
	// equal leaves out what grants more CPU than the limit.
	equal bool
	// tryOnly ends a case after its warming up.
	tryOnly bool
	// sampled: a case ends after a look by samples of that length; 0: it does not.
	sampled time.Duration
}

// keepsNothing tells whether cases only show what comes.
func (o *options) keepsNothing() bool { return o.tryOnly || o.sampled > 0 }

// lookFor is how long is recorded before anything is changed.
const lookFor = 6 * time.Second

// measure measures a case. The error says why it could not be measured.
func measure(ctx context.Context, o options, c services.Case, k *caseRun) (err error) {
	if missing := c.Missing(); missing != "" {
		return errors.New(missing)
	}
	k.At, k.Machine, k.Rounds, k.Each = time.Now().UTC(), study.Machine(), o.rounds, o.each
	s, err := services.Open(o.host, c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &measurement{o: o, c: c, k: k, s: s, t: tool{services.NewTool(o.exe, s)}}
	if k.Commit, err = m.t.Version(ctx); err == nil {
		err = os.Mkdir(m.t.State(), 0o700) // restore asks for it, whatever came before
	}
	if err != nil {
		cancel()
		return errors.Join(err, s.Close())
	}
	defer func() {
		// Also after an interrupt: what is in force goes before its cgroups do.
		err = errors.Join(err, m.t.Restore(context.WithoutCancel(ctx)))
		cancel()
		err = errors.Join(err, s.Close())
	}()
	say("%s: starting", c.Name)
	if m.of, err = s.Serve(ctx, c); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := m.all(ctx); err != nil || o.keepsNothing() {
		return err
	}
	if err := followAdvice(ctx, o, c, k); err != nil {
		return err
	}
	k.Complete = true
	return nil
}

// measurement is a case under way.
type measurement struct {
	o  options
	c  services.Case
	k  *caseRun
	s  *services.Stage
	t  tool
	of services.Service
}

func (m *measurement) all(ctx context.Context) error {
	defer m.disturb(ctx)()
	// A service is not at its usual pace in its first seconds.
	const warm = 3 * time.Second
	first, err := m.run(ctx, leaveIt, 0, warm)
	if err != nil {
		return err
	}
	say("%s: warm: %s, throttled %d of %d", m.c.Name, first.text(), first.Throttled, first.Periods)
	if m.o.tryOnly {
		return nil
	}
	if err := m.wants(ctx, warm); err != nil {
		return err
	}
	if m.o.sampled > 0 {
		return m.sample(ctx)
	}
	if err := m.ask(ctx); err != nil {
		return err
	}
	variants := m.k.Variants
	for round, i := range study.Turns(m.o.rounds, len(variants)) {
		if err := m.variant(ctx, &variants[i], round); err != nil {
			return err
		}
	}
	return nil
}

// disturb runs what disturbs the service, until stop is called.
func (m *measurement) disturb(ctx context.Context) (stop func()) {
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() { defer close(ended); m.of.Disturb(ctx) }()
	return func() { cancel(); <-ended }
}

// ask lets the tool look and fix, under the load of the client.
func (m *measurement) ask(ctx context.Context) error {
	stop, err := m.keepLoad(ctx)
	if err != nil {
		return err
	}
	defer stop()
	say("%s: explain and forecast", m.c.Name)
	if m.k.Look, err = m.t.look(ctx, lookFor, recordedName(m.o.keep, m.c.Name)); err != nil {
		return err
	}
	say("%s: %s; recommended: %s %s", m.c.Name, m.k.Look.Cause, m.k.Look.Answer, m.k.Look.Recommended)
	if m.k.Fix, err = m.t.fix(ctx); err != nil {
		return err
	}
	say("%s: fix: %s %s: %s %s", m.c.Name, m.k.Fix.Answer, m.k.Fix.Chosen, m.k.Fix.Verdict, m.k.Fix.Failed)
	m.k.Variants = m.toApply()
	return m.t.Restore(ctx)
}

// sample shows what look says of the service under the load of the client, without a record of its events, and whether it is right.
func (m *measurement) sample(ctx context.Context) error {
	inside, err := m.o.host.Members(m.t.Target)
	if err == nil && len(inside) == 0 {
		err = errors.New("no process runs in the container")
	}
	if err != nil {
		return err
	}
	stop, err := m.keepLoad(ctx)
	if err != nil {
		return err
	}
	defer stop()
	began := time.Now()
	if m.k.Look, err = m.t.sampled(ctx, inside[0], m.o.sampled); err != nil {
		return err
	}
	m.k.took = time.Since(began)
	l, score := m.k.Look, scoreOf(m.c, *m.k)
	say("%s: look: cause right %v, guilty right %v, suffers right %v, false alarm %v: %s, guilty %q, suffers %q (truth: %q, %q, %q): %s",
		m.c.Name, score.Cause, score.Guilty, score.Suffers, score.FalseAlarm, l.Cause, l.Guilty, l.Suffers, m.c.Causes, m.c.Guilty,
		m.c.Suffers, l.Verdict)
	return nil
}

// toApply are the variants to measure. Of several raises only the largest and the one
// that fix names are worth their time.
func (m *measurement) toApply() []variant {
	rows, named := m.k.Look.Rows, []string{m.k.Look.Recommended, twiceTheLimit}
	if len(m.k.Fix.Rows) > 0 {
		rows, named = m.k.Fix.Rows, append(named, m.k.Fix.Chosen)
	}
	return slices.DeleteFunc(append(variantsOf(rows), m.k.Fix.caps(m.c.Limit)...), func(v variant) bool {
		if m.o.equal && m.c.Healthy { // nothing is to be gained
			return len(v.Args) > 0
		}
		if m.o.equal && !grantsNoMore(m.c, v) && v.Name != noLimit { // no limit is what all others are compared with
			return true
		}
		return len(v.Args) > 1 && v.Args[1] == "raise" && !slices.Contains(named, v.Name)
	})
}

// keepLoad runs a client until stop is called.
func (m *measurement) keepLoad(ctx context.Context) (stop func(), err error) {
	if len(m.of.Streams) == 0 {
		return func() {}, nil
	}
	const longest = 10 * time.Minute
	o := m.order(0, longest)
	_, stop, err = services.StartClient(ctx, o)
	return stop, err
}

// order is the client's for one measurement. Cases and rounds have arrivals of their own, and the variants of a round have
// the same. With the same seeds for all cases, a calm time of one would be that of all.
func (m *measurement) order(round int, d time.Duration) services.Order {
	const warm = 500 * time.Millisecond
	return services.Order{Requests: m.of.Requests, Plan: loadgen.Plan{
		Seed: services.Seed(m.c.Name) + uint64(round), Streams: m.of.Streams, Connections: m.of.Connections, Drain: 2 * time.Second,
		Phases: []loadgen.Phase{{For: warm, Factor: m.k.load()}, {For: d, Factor: m.k.load(), Measured: true}},
	}}
}

// variant applies one, measures, and restores.
func (m *measurement) variant(ctx context.Context, v *variant, round int) error {
	refused, err := m.t.Apply(ctx, v.Args)
	if err != nil {
		return err
	}
	if refused != "" {
		v.Refused = refused
		say("%s: %s: refused: %s", m.c.Name, v.Name, refused)
		return m.t.Restore(ctx)
	}
	const settle = 500 * time.Millisecond
	if err := clock.Sleep(ctx, max(settle, forecast.SettlePeriods*v.period)); err != nil {
		return err
	}
	r, err := m.run(ctx, v.Name, round, max(m.o.each, forecast.MeasuredPeriods*v.period))
	if err != nil {
		return err
	}
	m.k.Runs = append(m.k.Runs, r)
	say("%s: round %d of %d: %s: %s", m.c.Name, round, m.o.rounds, v.Name, r.text())
	if len(v.Args) == 0 {
		return nil
	}
	return m.t.Restore(ctx)
}

// counters are what is read before and after a run.
type counters struct {
	at   time.Time
	stat cgroup.Stat
	busy time.Duration
	done float64
}

func (m *measurement) counters() (c counters, err error) {
	c.at = time.Now()
	if c.stat, err = m.s.Limited.Stat(); err != nil {
		return c, err
	}
	if c.stat.Usage == nil {
		return c, errors.New("the kernel does not measure the container's CPU use: mount the cpuacct controller")
	}
	host, err := procfs.ReadStat(os.DirFS("/proc"))
	if err != nil {
		return c, err
	}
	c.busy = host.Total.Busy()
	if m.of.Done != nil {
		c.done = m.of.Done()
	}
	return c, nil
}

// run measures once, without changing anything.
func (m *measurement) run(ctx context.Context, name string, round int, d time.Duration) (oneRun, error) {
	r := oneRun{Variant: name, Round: round}
	before, err := m.counters()
	if err != nil {
		return r, err
	}
	if len(m.of.Streams) > 0 {
		result, err := services.RunClient(ctx, m.order(round, d))
		if err != nil {
			return r, err
		}
		r.take(m.of.Streams, result)
	} else if err := clock.Sleep(ctx, d); err != nil {
		return r, err
	}
	after, err := m.counters()
	if err != nil {
		return r, err
	}
	r.count(before, after, m.of.Done != nil)
	return r, nil
}

// count fills in what the kernel counted.
func (r *oneRun) count(before, after counters, done bool) {
	seconds := after.at.Sub(before.at).Seconds()
	r.UsedCPUs = (*after.stat.Usage - *before.stat.Usage).Seconds() / seconds
	r.OthersCPUs = max(0, (after.busy-before.busy).Seconds()/seconds-r.UsedCPUs)
	r.Periods = after.stat.Periods - before.stat.Periods
	r.Throttled = after.stat.ThrottledPeriods - before.stat.ThrottledPeriods
	if done {
		r.Done = new((after.done - before.done) / seconds)
	}
}

// take fills in what the client measured: the first stream is judged.
func (r *oneRun) take(streams []loadgen.Stream, result loadgen.Result) {
	r.LateP99, r.FirstFail = new(milliseconds(result.Own.LateP99)), result.FirstFailure
	measured := result.Phases[len(result.Phases)-1].Streams
	for i, s := range measured {
		p99, ok := s.Latency.Quantile(0.99, 0)
		if i > 0 {
			if ok {
				if r.Beside == nil {
					r.Beside = map[string]float64{}
				}
				r.Beside[streams[i].Name] = milliseconds(p99)
			}
			continue
		}
		r.Requests, r.Errors = s.Intended, s.Errors()
		if p50, fine := s.Latency.Quantile(0.5, 0); ok && fine {
			r.P50, r.P99 = new(milliseconds(p50)), new(milliseconds(p99))
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// text is a run in a line.
func (r *oneRun) text() string {
	s := ""
	if r.P99 != nil {
		s = fmt.Sprintf("p50 %.2f ms, p99 %.2f ms of %d requests, ", *r.P50, *r.P99, r.Requests)
	}
	if r.Done != nil {
		s += fmt.Sprintf("%.2f done per second, ", *r.Done)
	}
	s += fmt.Sprintf("%.2f CPUs used, others %.2f", r.UsedCPUs, r.OthersCPUs)
	if r.Errors > 0 {
		s += fmt.Sprintf(", %d errors (%s)", r.Errors, r.FirstFail)
	}
	return s
}
