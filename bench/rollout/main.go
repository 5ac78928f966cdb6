// Command rollout lets the agent try remedies on real services, spread over hours, while it is killed again and again, and writes
// docs/results/rollout.md: what `make results-rollout` runs.
//
// # Problem
//
// In production nobody watches a trial. The agent that runs it is killed, upgraded and started anew; the load changes; other containers
// have trials too. Models of all that are in the tests of the agent. Only a real one, on others' programs, shows what they forgot.
//
// # Rule
//
// Several services (package services) run at once, each with an open-loop client whose load is drawn anew each minute. In the first and
// last minutes there is no agent. Between them one runs, with a rule for each service: `remedy: auto` by a trial that is spread over most of the time.
// It is killed by SIGKILL at drawn moments, and started anew at once. Every few seconds `status --json` tells what is in force. At the end
// the agent is told to end, everything is restored, and each limit is compared with that of the beginning.
//
// # Worked example
//
//	bin/rollout -for 2h -kills 10
//
// # Limits
//
// Services that share two CPUs wait for each other: what a remedy brings is less than on a host with room, and eight of them overload
// it (the night of 2026-11-30). A night is one night: how
// often a trial is wrong is counted on drawn services (package switchback's tests).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/study"
)

func main() { services.Main("rollout", run) }

// options are those of a night.
type options struct {
	exe           string
	cases         []services.Case
	length, alone time.Duration
	kills         int
	aa            bool
	beside        string
	seed          uint64
}

func run(ctx context.Context) error {
	exe := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM` to try")
	file := flag.String("records", "bench/rollout/records.jsonl.gz", "`FILE` with a line for each night")
	pageFile := flag.String("page", "docs/results/rollout.md", "`FILE` to write")
	which := flag.String("cases", "named-udp,unicorn-orders,etcd-ranges,swipl-threads",
		"`NAMES` of the services; together they should leave two CPUs some room")
	o := options{}
	flag.DurationVar(&o.length, "for", 2*time.Hour, "how long the agent runs, 10m at least; 0: only write the page")
	flag.DurationVar(&o.alone, "alone", 5*time.Minute, "how long the services run without an agent, before it and after it")
	flag.IntVar(&o.kills, "kills", 10, "how often the agent is killed")
	flag.BoolVar(&o.aa, "aa", false, "A/A tests: each block leaves its service as it is, and what would be kept is kept by chance")
	flag.StringVar(&o.beside, "beside", "", "`WHAT` else runs on the host meanwhile, for the page")
	flag.Uint64Var(&o.seed, "seed", 1, "of the loads and of the moments of the kills")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	have, err := study.ReadLines[night](*file)
	if err != nil {
		return err
	}
	if o.length > 0 {
		if o.exe, err = filepath.Abs(*exe); err != nil {
			return err
		}
		for name := range strings.SplitSeq(*which, ",") {
			c, ok := services.Find(name)
			if !ok {
				return fmt.Errorf("-cases: there is no case %q", name)
			}
			if missing := c.Missing(); missing != "" {
				return fmt.Errorf("%s: %s", name, missing)
			}
			o.cases = append(o.cases, c)
		}
		host, err := cgroup.Open("/proc")
		if err != nil {
			return err
		}
		n, err := measure(ctx, host, o)
		if err != nil {
			return err
		}
		if err := have.Add(n); err != nil {
			return err
		}
	}
	if len(have.All) == 0 {
		return errors.New("nothing was measured yet: give -for above 0")
	}
	return study.WritePage(*pageFile, page(slices.Clone(have.All)))
}
