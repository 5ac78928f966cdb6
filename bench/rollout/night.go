package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/agent"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/cure/switchback"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/test/study"
)

// night is a run of the agent on several services.
type night struct {
	study.Made
	// Seconds is how long the agent ran, Alone how long the services ran before it, and as long after it.
	Seconds float64 `json:"seconds"`
	// AA: the trials were A/A tests.
	AA bool `json:"aa,omitempty"`
	// Beside says what else ran on the host; "": nothing.
	Beside string  `json:"beside,omitempty"`
	Alone  float64 `json:"alone_seconds"`
	// AgentCPU is the CPU time of all agents.
	AgentCPU float64    `json:"agent_cpu_seconds"`
	Services []serviced `json:"services"`
	Kills    []kill     `json:"kills"`
	// Left is what was on trial still once the agent had ended by itself.
	Left []string `json:"left"`
	// Warnings are the lines of the agent's log at a level above info, each once.
	Warnings []string `json:"warnings"`
}

// serviced is what became of one service.
type serviced struct {
	Name    string   `json:"name"`
	Limit   float64  `json:"limit_cpus"`
	Minutes []minute `json:"minutes"`
	// Trial is the last that status told of its trial; null: it had none.
	Trial *agent.SpreadTrial `json:"trial"`
	// Over: status told of no trial any more at the end.
	Over bool `json:"over"`
	// KeptAt is when its trial was first seen to have kept a remedy; null: never.
	KeptAt *float64 `json:"kept_at_seconds,omitempty"`
	// AA is its A/A test; null: it had none.
	AA *aaTest `json:"aa,omitempty"`
	// Remedied counts the requests that the agent saw in blocks with a remedy until it kept one, LeftAlone those in other blocks.
	Remedied  switchback.Counted `json:"remedied"`
	LeftAlone switchback.Counted `json:"left_alone"`
	// InForce is the remedy in force at the end; "": none.
	InForce string `json:"in_force"`
	// Restored: after restore its limit, weight and CPUs were those of the beginning.
	Restored bool `json:"restored"`
}

// minute is what the client saw in one. Latencies are in ms; null: too few requests.
type minute struct {
	At       float64  `json:"at_seconds"` // since the agent's first start; below 0: before it; above the night's Seconds: after it
	Load     float64  `json:"load"`
	P50      *float64 `json:"p50_ms"`
	P99      *float64 `json:"p99_ms"`
	Requests uint64   `json:"requests"`
	Errors   uint64   `json:"errors"`
}

// kill is one end of the agent by SIGKILL.
type kill struct {
	At float64 `json:"at_seconds"`
	// OnTrial is what it left on trial. Abandoned is what was in force once the next agent had run for a while, and neither on trial nor
	// kept.
	OnTrial   []string `json:"on_trial"`
	Abandoned []string `json:"abandoned"`
}

const (
	// each is the length of a minute of the clients.
	each = time.Minute
	// looks is how often status is asked.
	looks = 5 * time.Second
	// recovers is for how long an agent may run until what its predecessor left on trial is undone.
	recovers = 30 * time.Second
)

// loads are the multiples of the usual load, of which one is drawn for each minute.
var loads = []float64{0.5, 0.75, 1}

// staged is a service that runs.
type staged struct {
	c     services.Case
	stage *services.Stage
	of    services.Service
	set   settings
	path  string
}

// measure runs a night.
func measure(ctx context.Context, host *cgroup.Host, o options) (n night, err error) {
	dir, err := os.MkdirTemp("", "unthrottle-rollout-")
	if err != nil {
		return n, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var all []*staged
	defer func() {
		cancel()
		running.Wait()
		for _, s := range all {
			err = errors.Join(err, s.stage.Close())
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	n = night{Made: study.Now(time.Now()), Seconds: o.length.Seconds(), Alone: o.alone.Seconds(), AA: o.aa, Beside: o.beside,
		Left: []string{}, Warnings: []string{}}
	if n.Commit, err = services.NewTool(o.exe, nil).Version(ctx); err != nil {
		return n, err
	}
	for _, c := range o.cases {
		s, err := start(ctx, host, c)
		if s != nil {
			all = append(all, s)
		}
		if err != nil {
			return n, fmt.Errorf("%s: %w", c.Name, err)
		}
		n.Services = append(n.Services, serviced{Name: c.Name, Limit: c.Limit})
	}
	began := time.Now().Add(o.alone)
	until := began.Add(o.length)
	var failed error
	var lock sync.Mutex
	for i, s := range all {
		running.Go(func() { s.of.Disturb(ctx) })
		running.Go(func() {
			minutes, err := s.clients(ctx, o.seed+uint64(i), began, until.Add(o.alone))
			lock.Lock()
			defer lock.Unlock()
			if n.Services[i].Minutes = minutes; err != nil && ctx.Err() == nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", s.c.Name, err))
				cancel()
			}
		})
	}
	if err := clock.Sleep(ctx, o.alone); err != nil {
		return n, errors.Join(failed, err)
	}
	fmt.Fprintf(os.Stderr, "rollout: %d services run; the agent runs until %s\n", len(all), until.Format(time.TimeOnly))
	a := &agents{exe: o.exe, dir: dir, night: &n, all: all, began: began}
	err = a.run(ctx, until, o)
	if err == nil {
		err = clock.Sleep(ctx, o.alone)
	}
	cancel()
	running.Wait()
	err = errors.Join(err, failed)
	for i, s := range all {
		set, unread := settingsOf(host, s.path)
		err = errors.Join(err, unread)
		n.Services[i].Restored = set == s.set
	}
	return n, err
}

func start(ctx context.Context, host *cgroup.Host, c services.Case) (*staged, error) {
	stage, err := services.Open(host, c)
	if err != nil {
		return nil, err
	}
	s := &staged{c: c, stage: stage, path: stage.Limited.At().Path}
	if s.of, err = stage.Serve(ctx, c); err != nil {
		return s, err
	}
	if len(s.of.Streams) == 0 {
		return s, errors.New("it has no requests, so that nothing judges")
	}
	s.set, err = settingsOf(host, s.path)
	return s, err
}

// settings are those of a container that remedies of these rules set.
type settings struct {
	limit  cgroup.Limit
	shares uint64
	cpus   string
}

func settingsOf(host *cgroup.Host, path string) (s settings, err error) {
	s.limit, err = cgroup.ReadLimit(host, path)
	shares, unread := cgroup.ReadShares(host, path)
	cpus, _, none := cgroup.CPUs(host, path)
	s.shares, s.cpus = shares, cpus.String()
	return s, errors.Join(err, unread, none)
}

// clients loads the service until a moment, each minute by a load of its own.
func (s *staged) clients(ctx context.Context, seed uint64, began, until time.Time) (all []minute, err error) {
	draw := rand.New(rand.NewPCG(seed, 0))
	for ctx.Err() == nil && time.Now().Before(until) {
		m := minute{At: time.Since(began).Seconds(), Load: loads[draw.IntN(len(loads))]}
		result, err := services.RunClient(ctx, services.Order{Requests: s.of.Requests, Plan: loadgen.Plan{Seed: draw.Uint64(),
			Streams: s.of.Streams, Connections: s.of.Connections, Drain: 2 * time.Second,
			Phases: []loadgen.Phase{{For: each, Factor: m.Load, Measured: true}}}})
		if err != nil {
			return all, err
		}
		judged := result.Phases[0].Streams[0]
		m.Requests, m.Errors = judged.Intended, judged.Errors()
		m.P50, m.P99 = services.Milliseconds(judged.Latency, 0.5), services.Milliseconds(judged.Latency, 0.99)
		all = append(all, m)
	}
	return all, nil
}

// rules let the agent spread trials over a time on every service of this study.
const rules = `version: 1
mode: apply
interval: 1s
startup: 10s
listen: 127.0.0.1:0
rules:
%s- match: {cgroup: "/**"}
  remedy: none
`

// rule is that of one service.
const rule = `- match: {cgroup: %q}
  remedy: auto
  verify: probe
  trial: {most: %v, per: 168h, over: %v%s}
`

// agents are those that run one after the other.
type agents struct {
	exe, dir string
	night    *night
	all      []*staged
	began    time.Time
	now      *exec.Cmd
	ended    chan error // of now
}

// run lets agents run until a moment, kills them, and restores everything.
func (a *agents) run(ctx context.Context, until time.Time, o options) (err error) {
	var text string
	const leastOver = 10 * time.Minute // that a rule takes
	over := max(leastOver, o.length*4/5)
	kind := ""
	if o.aa {
		kind = ", aa: true"
	}
	for _, s := range a.all { // a node has one block at a time
		text += fmt.Sprintf(rule, s.path, (over / time.Duration(len(a.all))).Truncate(time.Second), over.Truncate(time.Second), kind)
	}
	if err := os.Mkdir(filepath.Join(a.dir, "state"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(a.config(), fmt.Appendf(nil, rules, text), 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.restore()) }()
	if err := a.start(); err != nil {
		return err
	}
	defer func() { _ = a.end(syscall.SIGKILL) }() // one that has ended is as well
	for _, at := range moments(o.kills, o.length, o.seed) {
		if err := a.watch(ctx, a.began.Add(at)); err != nil {
			return err
		}
		if err := a.kill(ctx); err != nil {
			return err
		}
	}
	if err := a.watch(ctx, until); err != nil {
		return err
	}
	if err := a.end(syscall.SIGTERM); err != nil {
		return fmt.Errorf("the agent's end: %w", err)
	}
	told, err := a.look()
	if err != nil {
		return err
	}
	a.night.Left = append(a.night.Left, told.onTrial()...)
	a.take(told, true)
	if log, unread := os.ReadFile(a.log()); unread == nil {
		a.takeEndsAA(string(log))
	}
	a.night.Warnings, err = warnings(a.log())
	return err
}

// moments are when the agent is killed: one in each equal part of the time, at a drawn moment of its middle.
func moments(kills int, length time.Duration, seed uint64) (all []time.Duration) {
	draw := rand.New(rand.NewPCG(seed, 1))
	part := length / time.Duration(max(1, kills))
	for i := range kills {
		all = append(all, time.Duration(i)*part+part/4+time.Duration(draw.Int64N(int64(part/2))))
	}
	return all
}

func (a *agents) config() string { return filepath.Join(a.dir, "agent.yaml") }
func (a *agents) log() string    { return filepath.Join(a.dir, "log") }

// tool is a command of the program on the agents' journal.
func (a *agents) tool(args ...string) *exec.Cmd {
	return exec.Command(a.exe, append(args, "--state-dir", filepath.Join(a.dir, "state"))...)
}

// restore puts everything back.
func (a *agents) restore() error {
	out, err := a.tool("restore").CombinedOutput()
	if err != nil {
		return fmt.Errorf("restore: %w: %.500s", err, out)
	}
	return nil
}

func (a *agents) start() error {
	log, err := os.OpenFile(a.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	a.now = a.tool("agent", "--config", a.config(), "--nri", "off")
	a.now.Stderr = log
	a.now.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := a.now.Start(); err != nil {
		return err
	}
	a.ended = make(chan error, 1)
	go func(of *exec.Cmd, ended chan<- error) { ended <- of.Wait() }(a.now, a.ended)
	return nil
}

// end ends the agent that runs, by a signal.
func (a *agents) end(by syscall.Signal) error {
	if a.now == nil {
		return nil
	}
	err := a.now.Process.Signal(by)
	if err == nil {
		err = <-a.ended
	}
	if of := a.now.ProcessState; of != nil {
		a.night.AgentCPU += (of.UserTime() + of.SystemTime()).Seconds()
	}
	if a.now = nil; by == syscall.SIGKILL {
		return nil // "killed" is no error here
	}
	return err
}

// watch looks until a moment.
func (a *agents) watch(ctx context.Context, until time.Time) error {
	for time.Now().Before(until) {
		if err := clock.Sleep(ctx, min(looks, time.Until(until))); err != nil {
			return err
		}
		select {
		case err := <-a.ended:
			a.now = nil
			log, _ := os.ReadFile(a.log())
			return fmt.Errorf("the agent ended by itself: %w; its log ends: %s", err, log[max(0, len(log)-600):])
		default:
		}
		told, err := a.look()
		if err != nil {
			return err
		}
		if a.take(told, false); a.night.AA {
			if err := a.takeAA(); err != nil {
				return err
			}
		}
	}
	return nil
}

// kill kills the agent, starts the next one, and looks at what that does with what was on trial.
func (a *agents) kill(ctx context.Context) error {
	_ = a.end(syscall.SIGKILL)
	told, err := a.look()
	if err != nil {
		return err
	}
	k := kill{At: time.Since(a.began).Seconds(), OnTrial: told.onTrial(), Abandoned: []string{}}
	if err := a.start(); err != nil {
		return err
	}
	if err := clock.Sleep(ctx, recovers); err != nil {
		return err
	}
	if told, err = a.look(); err != nil {
		return err
	}
	k.Abandoned = append(k.Abandoned, told.abandoned()...)
	a.night.Kills = append(a.night.Kills, k)
	fmt.Fprintf(os.Stderr, "rollout: killed after %.0f s with %d on trial, of which %d were left %v after the next start\n", k.At,
		len(k.OnTrial), len(k.Abandoned), recovers)
	return nil
}
