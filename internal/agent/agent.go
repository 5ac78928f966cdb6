package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/nri"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/collect"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// Config of an agent.
type Config struct {
	Rules policy.Rules
	// ConfigFile is where they are from.
	ConfigFile string
	// Host is watched; Env writes.
	Host *cgroup.Host
	Env  apply.Env
	// Fix is this host as package fix sees it, with the given latency source.
	Fix func(latencies slo.Source) fix.Env
	// List finds the containers, Facts what plans rest on (used: CPU use by
	// path where known; nil: not needed).
	List  func() ([]container.Container, error)
	Facts func(ctx context.Context, containers []container.Container, used map[string]float64) (hoststate.Facts, error)
	// Age is for how long a container's oldest process has run; false: that is not known.
	Age func(container.Container) (time.Duration, bool)
	// Latencies makes a latency source of a rule's command.
	Latencies func(command string) slo.Source
	// Interrupts looks at the host's, for rules with irqs.
	Interrupts func() (hoststate.Interrupts, error)
	// Untrusted says why commands from the configuration must not be run; "":
	// they may.
	Untrusted string
	Flight    Flight
	// Pods is the file of the probes of this node's pods; "": none.
	Pods string
	// NRI is the connection to the runtime; nil: none.
	NRI *nri.Plugin
	// Direct is Env.FS without the runtime in between, for what must not wait for it.
	Direct  cgroup.FS
	Version string
	// Reloaded: the rules are new, so that what did not help under the old ones may be tried again at once.
	Reloaded bool
	Log      *slog.Logger
	// Answers is the socket where containers, status and recordings are answered; "": containers and status on the loopback
	// address, and recordings nowhere.
	Answers string
	// AnswersUID is the user to whom it answers, beside root and the agent's own.
	AnswersUID int
	// Listeners stay open from one run to the next; nil: for this run alone.
	Listeners *Listeners
	// Ready, if not nil, is told where /metrics listens.
	Ready func(net.Addr)
}

const (
	// retryAfter is how long a remedy that did not help, or was refused, is not
	// tried again for the same container.
	retryAfter = time.Hour
	// choreInterval is how often what is in force is looked after when nothing
	// new appeared; after newcomers it is every round for newcomerRounds, since
	// a runtime writes a new container's cpuset some time after making it.
	choreInterval  = 10 * time.Second
	newcomerRounds = 10
)

// agent is a running one. Its parts share only what mu guards.
type agent struct {
	Config
	totals        totals
	journal       journalFigures
	narrow        narrowFigures
	placer        placer
	lender        lender
	spent         spent.CPU
	budget        budget
	rounds        prometheus.Counter
	chooser       *chooser
	spreadFigures spreadFigures
	// recorder is nil where there is no probe; it is set before anything runs.
	recorder   *recorder
	spreadEnds spreadEnds
	// probes is nil where no file tells of the node's pods.
	probes *podProbes

	// What is in force as last read, and of which journal: of the acting
	// goroutine alone.
	heldStamp   string
	heldNow     []txn.InForce
	historyRead bool
	// startsTried is by the ID of a container's cgroup.
	startsTried map[uint64]triedStart
	back        takingBack

	// sink keeps rows for questions over many hosts; nil: the rules ask for none.
	sink *collect.Sink

	mu        sync.Mutex
	latest    observe.Snapshot      // the newest round; taken by acting
	shown     []observe.Observation // those of the newest round, for GET /containers
	heldShown []txn.InForce         // what is in force, for GET /status
	lastRound time.Time
	// lastInterval is the interval that was in force then.
	lastInterval time.Duration
	newcomers    int              // rounds for which to look after newcomers still
	newcomersAt  time.Time        // when the last of them was counted
	task         task             // of the acting goroutine
	now          func() time.Time // nil: the time of this host
	wake         chan struct{}    // told of each round; holds one
}

// Run runs an agent until ctx ends or it cannot go on.
func Run(ctx context.Context, c Config) error {
	a := &agent{Config: c, wake: make(chan struct{}, 1), lastRound: time.Now(), chooser: newChooser(c.Rules,
		c.Untrusted),
		startsTried: map[uint64]triedStart{}}
	a.chooser.by = c.Env.By
	a.chooser.pods, a.chooser.age, a.chooser.tell = podsOf(c.NRI), c.Age, a.tellRefused
	if c.Flight.Probe != nil {
		c.Flight.Probe.Measure(a.spent.ProbeWork)
	}
	if c.Untrusted != "" && c.Rules.Mode == policy.Apply && c.Rules.HasCommands() {
		c.Log.Warn("rules with an slo command apply nothing: their commands must not be run", "why", c.Untrusted)
	}
	defer frugal()()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	part := func(name string, run func(context.Context) error) {
		group.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	if err := a.export(); err != nil {
		return err
	}
	a.probes = newPodProbes(c.Pods, func(why error) { c.Log.Warn("the file of the node's pods is not read", "why", why) })
	a.startFlight(part)
	registry := a.registry()
	part("metrics", func(ctx context.Context) error {
		l, err := c.Listeners.tcp(ctx, c.Rules.Listen)
		if err != nil {
			return err
		}
		return serve(ctx, l, &a.spent, pages{registry, a.report, a.healthy, c.NRI.Ready, a}, c.Ready)
	})
	if c.Answers != "" {
		part("answers", a.serveAnswers)
	}
	if c.NRI != nil {
		c.NRI.BeforeResize(a.makeRoom)
		part("nri", func(ctx context.Context) error { return c.NRI.Run(ctx, a.newcomersAhead) })
	}
	part("memory", a.trimNowAndThen)
	part("budget", a.keepBudget)
	part("watching", a.watch)
	part("acting", a.act)
	<-ctx.Done()
	group.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (a *agent) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	for _, c := range a.collectors() {
		r.MustRegister(a.spent.Collecting(c))
	}
	return r
}

// collectors are what /metrics shows.
func (a *agent) collectors() []prometheus.Collector {
	a.rounds = prometheus.NewCounter(prometheus.CounterOpts{Name: "unthrottle_rounds_total", Help: "Rounds of looking at all containers."})
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "unthrottle_build_info", Help: "1, with the version and what the agent may do.",
		ConstLabels: prometheus.Labels{"version": a.Version, "mode": string(a.Rules.Mode)}})
	info.Set(1)
	return []prometheus.Collector{&a.totals, &a.journal, &a.narrow, &a.placer.figures, &a.lender, &a.spreadFigures, flightFigures{a},
		exportFigures{a.sink}, a.rounds, info, a.probes,
		nriFigures{a.NRI}, notTreated{a.chooser}, &a.spent, &a.budget, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
}

// time is the present, which tests set.
func (a *agent) time() time.Time {
	if a.now != nil {
		return a.now()
	}
	return time.Now()
}

// watch takes rounds in as they come.
func (a *agent) watch(ctx context.Context) error {
	var sampler observe.Options
	if a.recorder != nil {
		sampler.Probe = measuredProbe{a.Flight.Probe, &a.spent}
	}
	listed := container.DefaultOptions()
	listed.Scope = a.Rules.Scope
	sink := a.sink
	var last []observe.Observation
	w := observe.NewWatcher(a.Host, observe.WatchOptions{
		Sampler: sampler,
		Scope:   a.Rules.Scope, Interval: a.Rules.Interval, Pace: a.interval, Log: a.Log,
		PollInterval: -1, // cells show in `top` alone
		LeaveVacant:  true,
		List:         a.spent.Listing(container.NewLister(a.Host, listed).List), Step: a.spent.Step,
		Changed: func(came, gone []container.Container) {
			for _, warning := range listed.Runtimes.Warnings() {
				a.Log.Warn(warning)
			}
			a.Log.Debug("containers changed", "came", len(came), "gone", len(gone))
			a.newcomersAhead()
		},
	})
	if sink != nil {
		defer func() {
			if _, err := sink.Close(last); err != nil {
				a.Log.Error("rows of the fleet could not be kept", "error", err)
			}
		}()
	}
	return w.Run(ctx, func(s observe.Snapshot) {
		if sink != nil {
			sink.Round(s.Observations)
			last = s.Observations
		}
		a.totals.add(s.Observations, s.Vacant)
		a.rounds.Inc()
		if a.recorder != nil {
			a.recorder.round(s)
			a.probes.round(ctx, s)
			a.tellProbes(a.time())
		}
		a.mu.Lock()
		a.latest, a.shown, a.lastRound, a.lastInterval = s, s.Observations, time.Now(), a.interval()
		a.mu.Unlock()
		a.signal()
	})
}

// export starts what keeps rows for questions over many hosts, if the rules ask for them.
func (a *agent) export() error {
	of := a.Rules.Export
	if of.Dir == "" {
		a.tellStatus(exportFile, nil)
		return nil
	}
	if of.Node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("export: this host's name: %w; name the node in the rules (export: node)", err)
		}
		of.Node = name
	}
	a.sink = collect.New(collect.Options{Names: demand.Names{Cluster: of.Cluster, Node: of.Node}, Dir: of.Dir,
		Long: remedy.LongPeriods(),
		Keep: store.Keep{For: of.KeepFor, Bytes: of.KeepBytes}, Now: a.time, Kept: a.tellExport, FS: a.Host,
		Proc: os.DirFS("/proc"), Sys: os.DirFS("/sys"),
		InForce: func() ([]txn.InForce, error) { return apply.Status(a.Env) }, Objective: a.objective,
		Failed: func(err error) { a.Log.Error("rows of the fleet could not be kept for now", "error", err) },
	})
	return nil
}

// objective is that of the rule in force for a container, by its pod's labels and annotations; the zero value: it has none.
func (a *agent) objective(c container.Container) objective.Objective {
	if rule := a.Rules.Effective(c, a.chooser.pods.pod(c.ID)).Rule; rule != nil {
		return rule.Objective
	}
	return objective.Objective{}
}

// newcomersAhead has what is in force looked after in each of the next rounds. It does not wait.
func (a *agent) newcomersAhead() {
	a.mu.Lock()
	a.newcomers = newcomerRounds
	a.mu.Unlock()
	a.signal()
}

func (a *agent) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}
