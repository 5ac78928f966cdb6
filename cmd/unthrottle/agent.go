package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/agent"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq/irqhost"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

func newAgent() *cobra.Command {
	var w writeFlags
	var config, cpu, memory string
	cmd := &cobra.Command{
		Use:     "agent --config FILE",
		GroupID: groupChange,
		Short:   "Watch all containers by rules; apply only if the file says so",
		Long: `Watch all containers continuously, export what is seen on /metrics, and, where
the rules in the file ask for it, apply remedies and keep them true.

It observes only, unless the file says 'mode: apply'; and applies only what the
user's own latency (slo) shows to be better. It listens on 127.0.0.1 unless told
otherwise, and nothing can be changed over the network.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if config == "" {
				return errors.New("--config is missing: a file with at least 'version: 1' (docs/reference/agent.md)")
			}
			rules, untrusted, err := policy.ReadRules(config)
			if err != nil {
				return missingFile(config, err)
			}
			own, err := ownBudget(cpu, memory)
			if err != nil {
				return err
			}
			return runAgent(cmd, w, rules, untrusted, own)
		},
	}
	w.add(cmd)
	w.addLift(cmd)
	cmd.Flags().StringVar(&config, "config", "", "`FILE` with the rules")
	cmd.Flags().StringVar(&cpu, "budget-cpu", "", "what the agent itself may take of a CPU, for example `1%`; beyond it drops recordings, then periods, then its rate")
	cmd.Flags().StringVar(&memory, "budget-memory", "", "what it may hold resident, for example `64MiB`; else as above")
	return cmd
}

// ownBudget reads what the agent itself may take; "" is no bound.
func ownBudget(cpu, memory string) (own agent.Own, err error) {
	if number, percent := strings.CutSuffix(cpu, "%"); cpu != "" {
		own.CPU, err = strconv.ParseFloat(number, 64)
		own.CPU /= 100
		if err != nil || !percent || !(own.CPU > 0) || own.CPU > 100 {
			return own, fmt.Errorf("--budget-cpu %.40q: want a share of one CPU, for example 1%%", cpu)
		}
	}
	if number, mebi := strings.CutSuffix(memory, "MiB"); memory != "" {
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || !mebi || n < 1 {
			return own, fmt.Errorf("--budget-memory %.40q: want a number of MiB, for example 64MiB", memory)
		}
		own.MemoryBytes = n << 20
	}
	return own, nil
}

func runAgent(cmd *cobra.Command, w writeFlags, rules policy.Rules, untrusted string, own agent.Own) error {
	h, err := openCgroups()
	if err != nil {
		return err
	}
	if err := needCPU(h); err != nil {
		return err
	}
	if err := w.fromRules(cmd, rules); err != nil {
		return err
	}
	env, done, err := w.env(cmd, h)
	if err != nil {
		return err
	}
	defer done()
	rules.Scope = env.Scope
	env.Log = w.logAt(levelInfo)
	recorder, closeProbe := flightOf(h, rules, w.stateDir)
	defer closeProbe()
	return agent.Run(cmd.Context(), agent.Config{
		Rules: rules, Host: h, Env: env, Untrusted: untrusted, Version: version, Log: env.Log, Flight: recorder, Own: own,
		Fix: func(latencies slo.Source) fix.Env {
			return hostEnv(cmd.Context(), h, env, &w, latencies)
		},
		List: func() ([]container.Container, error) { return list(h, "") },
		Facts: func(ctx context.Context, all []container.Container, used map[string]float64) (hoststate.Facts, error) {
			return w.facts(ctx, h, env, all, used)
		},
		Latencies: slo.Latencies,
		Interrupts: func() (hoststate.Interrupts, error) {
			return gather.Interrupts(irqhost.New("/proc"), os.DirFS("/"))
		},
		Ready: func(at net.Addr) {
			say("watching; http://%s/metrics; mode %s", at, rules.Mode)
		},
	})
}

// agentRingBytes is the buffer of a recording that the agent makes by itself. It is mapped twice, so that 8 MiB would
// be 16 MiB resident. It holds 10 ms, between two reads, of 2.6 million events a second.
const agentRingBytes = 1 << 20

// flightOf connects the agent's flight recorder to this host.
func flightOf(h *cgroup.Host, rules policy.Rules, stateDir string) (f agent.Flight, done func()) {
	done = func() {}
	if !rules.Flight.Probe {
		return f, done
	}
	p, missing := openProbe(probe.Options{RingBytes: agentRingBytes})
	if p == nil {
		return agent.Flight{Missing: missing}, done
	}
	return agent.Flight{Probe: p, Dir: filepath.Join(stateDir, flightDir), Record: func(ctx context.Context, c container.Container, w io.Writer) error {
		all, err := list(h, "")
		if err != nil {
			return err
		}
		return live.Keep(ctx, p, live.Options{Host: h, Root: os.DirFS("/"), Target: c, Others: live.Others(c, all), For: agent.RecordFor, Keep: w})
	}}, func() { p.Close() }
}

// fromRules takes scope and state directory from the file where the command
// line does not give them. Two different scopes are a contradiction.
func (f *writeFlags) fromRules(cmd *cobra.Command, r policy.Rules) error {
	if r.Scope != "" {
		if f.scope != "" && f.scope != r.Scope {
			return fmt.Errorf("--scope %s and the file's scope %s differ: give one of them", f.scope, r.Scope)
		}
		f.scope = r.Scope
	}
	if r.StateDir != "" && !cmd.Flags().Changed("state-dir") {
		f.stateDir = r.StateDir
	}
	return nil
}
