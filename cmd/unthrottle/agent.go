package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/agent"
	"github.com/unthrottle/unthrottle/internal/agent/sparinglog"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/container/runtimes"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/fix/learn"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/nri"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/kernel/irq/irqhost"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

func newAgent() *cobra.Command {
	var f agentFlags
	var check bool
	cmd := &cobra.Command{
		Use:     "agent --config FILE",
		GroupID: groupChange,
		Short:   "Watch all containers by rules; apply only if the file says so",
		Long: `Watch all containers continuously, export what is seen on /metrics, and, where
the rules in the file ask for it, apply remedies and keep them true.

It observes only, unless the file says 'mode: apply'. Then it applies what your
own latency (slo) or its recordings (verify: probe) can judge, and undoes what
did not help. It listens on 127.0.0.1 unless told otherwise, and nothing can be
changed over the network.

SIGHUP makes it read the file again. If the new file has a mistake, the agent
names it and goes on with the old one. --watch-config does the same when the
file changed.`,
		Example: `  unthrottle agent --check --config /etc/unthrottle.yaml
  sudo unthrottle agent --config /etc/unthrottle.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.config == "" {
				return errors.New("--config is missing: a file with at least 'version: 1' (docs/reference/agent.md)")
			}
			// Without --answers all users of the host are answered, and without a budget none is kept to.
			if err := rejectEmptyFlags(cmd, "answers", "pods", "node", "budget-cpu", "budget-memory", "scope", "state-dir",
				"lift-below"); err != nil {
				return err
			}
			c, err := f.read(cmd.Context(), cmd)
			if check {
				return f.check(cmd.OutOrStdout(), c, err)
			}
			if err != nil {
				return err
			}
			return runAgent(cmd, f, c)
		},
	}
	f.write.add(cmd)
	f.write.addLift(cmd)
	shareString(cmd, &f.config, "config", "", "")
	cmd.Flags().BoolVar(&f.watch, "watch-config", false, "read the file again when it changed, as after SIGHUP")
	cmd.Flags().BoolVar(&check, "check", false, "read the file, name every mistake in it, and start nothing")
	cmd.Flags().StringVar(&f.cpu, "budget-cpu", "", "the `SHARE` of a CPU that the agent itself may take, for "+
		"example 1%; beyond it drops recordings, then periods, then its rate (default: own_budget of the file)")
	cmd.Flags().StringVar(&f.nri, "nri", nriAuto, "the runtime's plugin `SOCKET` (NRI of containerd or CRI-O), for "+
		"names, labels and updates; auto: "+nri.DefaultSocket+" where it is; off: none")
	cmd.Flags().StringVar(&f.answers, "answers", "", "the `SOCKET` where /containers, /policy, /status and /recordings "+
		"answer root; default: the loopback address, to all users of the host, and no /recordings")
	cmd.Flags().IntVar(&f.answersUID, "answers-uid", 0, "the `UID` of a user to whom the socket of --answers answers too")
	cmd.Flags().StringVar(&f.pods, "pods", "", "the `FILE` that tells of the probes of this node's pods (Kubernetes); "+
		"it is read again when it changed")
	shareString(cmd, &f.node, "node", "", ", where export of the file names none (default: the host's name)")
	cmd.Flags().StringVar(&f.memory, "budget-memory", "", "the `SIZE` that it may hold resident, for example 64MiB; else as above")
	return cmd
}

// watchOnce runs an agent until ctx ends. ready is told where it listens.
func watchOnce(ctx context.Context, cmd *cobra.Command, c agentConfig, ready func(net.Addr)) error {
	h, err := openCgroups()
	if err != nil {
		return err
	}
	if err := needCPU(h); err != nil {
		return err
	}
	w, rules := c.write, c.rules
	env, done, err := w.env(cmd, h)
	if err != nil {
		return err
	}
	defer done()
	release, err := aloneIn(env.StateDir)
	if err != nil {
		return err
	}
	defer release()
	rules.Scope = env.Scope
	env.Log = slog.New(sparinglog.OncePerMinute(w.logAt(levelInfo).Handler()))
	var plugin *nri.Plugin
	direct := env.FS
	if c.nri != nil {
		options := *c.nri
		options.Log, options.AnnotationPrefix = env.Log, policy.AnnotationPrefix
		plugin = nri.New(options)
		env.FS = plugin.Through(env.FS)
		defer runtimes.ThisHost().AddSource(plugin.Names)()
	}
	if profile := features.SecurityProfile(infile.Root("/")); profile != "" {
		env.Log.Warn("containers may have no names: a security profile refuses the files of other processes", "profile", profile)
	}
	recorder, closeProbe := flightOf(h, rules, w.stateDir)
	defer closeProbe()
	return agent.Run(ctx, agent.Config{
		Rules: rules, ConfigFile: c.file, Host: h, Env: env, Untrusted: c.untrusted, Version: version,
		Reloaded: c.reloaded, Log: env.Log, Flight: recorder, NRI: plugin, Direct: direct, Answers: c.answers,
		AnswersUID: c.answersUID, Pods: c.pods, Listeners: c.listeners,
		Fix: func(latencies slo.Source) fix.Env {
			return hostEnv(ctx, h, env, &w, latencies, nil, nil)
		},
		List: func() ([]container.Container, error) { return list(h, "") },
		Facts: func(ctx context.Context, containers []container.Container, used map[string]float64) (hoststate.Facts, error) {
			return w.facts(ctx, h, env, containers, used)
		},
		Age:       func(c container.Container) (time.Duration, bool) { return container.Age(h, os.DirFS("/proc"), c) },
		Latencies: slo.Latencies,
		Interrupts: func() (hoststate.Interrupts, error) {
			return gather.Interrupts(irqhost.New("/proc"), infile.Root("/"))
		},
		Ready: ready,
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
	return agent.Flight{Probe: p, Dir: filepath.Join(stateDir, flightDir), Read: learn.File, Explain: live.File, Price: priceFile,
		Record: func(ctx context.Context, c container.Container, w io.Writer) error {
			containers, err := list(h, "")
			if err != nil {
				return err
			}
			return live.Keep(ctx, p, live.Options{Host: h, Root: infile.Root("/"), Target: c, Others: live.Others(c, containers),
				For: agent.RecordFor, Keep: w})
		}}, func() { p.Close() }
}
