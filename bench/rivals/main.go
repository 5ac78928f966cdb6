// Command rivals runs services under what other projects do with a container's CPU settings, and under this project's remedies, in one
// run, and writes docs/results/rivals.md: what `make results-rivals` runs. With -sizes it writes docs/results/sizes.md (sizes.go).
//
// # Problem
//
// That a remedy makes a service faster than its limit leaves it says nothing of what else somebody could install. Studies that run a
// remedy here and quote a rival's figures from elsewhere compare machines, loads and services as well.
//
// # Rule
//
// A service of package services runs with a client outside, and a neighbour beside it with an own client. Each variant gets the same
// load, in steps from half of the service's usual load upwards, until two steps in a row are over the objective: three times the p99 that
// the service has at half of its load without a limit. The variants take turns; the service starts anew for each, and one of a JVM has
// its usual load without a limit until it has compiled. Rules (package rules) run in this process: they are asked at their own cadence and
// told what their project would see, and what they ask for is written to the container's cgroup. Those that need a history get a day whose
// load goes from a quarter at night to all by day, with what the service used of CPU time at its usual load without a limit. Before the
// first step each variant has the usual load for long enough to decide.
//
// The highest load within the objective lies between the last step within it and the first one over it, by the logarithm of p99. Quantiles
// at half and at four fifths of that load are read off in the same way.
//
// # Worked example
//
// With an objective of 30 ms, and p99 of 20 ms at 1.25 times the load and 45 ms at 1.5 times, the highest load is half way between: 1.375.
//
// # Limits
//
// One container on a host with two CPUs, minutes instead of days. What a project does beside CPU settings is not here (see package
// rules). A rule whose writes the kernel refuses keeps what was there, as the project does, and the refusals are counted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/test/study"
)

func main() { services.Main("rivals", run) }

// options of all measurements.
type options struct {
	host *cgroup.Host
	exe  string
	// each is how long a step is measured, at least ten periods of the limit in force.
	each time.Duration
}

func run(ctx context.Context) error {
	o := options{}
	exe := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM` to try")
	file := flag.String("records", "bench/rivals/records.jsonl.gz", "`FILE` with a line for each service, variant and round")
	page := flag.String("page", "docs/results/rivals.md", "`FILE` to write")
	names := flag.String("services", "", "`NAMES` of services to measure; none: all of the page")
	sizes := flag.Bool("sizes", false, "measure how many CPUs each way to hold a service needs, for docs/results/sizes.md")
	which := flag.String("variants", "", "`NAMES` of variants to measure; none: all")
	rounds := flag.Int("rounds", 2, "how often each variant is measured; what is there already is not measured again; 0: only write the page")
	flag.DurationVar(&o.each, "each", 8*time.Second, "how long each step is measured at least")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	list := served
	if *sizes {
		list = slices.Compact(slices.Sorted(slices.Values(slices.Concat(shardedServices, sizedServices))))
	}
	chosen, err := chosenServices(*names, list)
	if err != nil {
		return err
	}
	wanted, err := chosenVariants(*which)
	if err != nil {
		return err
	}
	if o.exe, err = filepath.Abs(*exe); err != nil {
		return err
	}
	if *rounds > 0 {
		if o.host, err = cgroup.Open("/proc"); err != nil {
			return err
		}
	}
	if *sizes {
		return sizesInTurns(ctx, o, chosen, *rounds)
	}
	have, err := study.ReadLines[piece](*file)
	if err != nil {
		return err
	}
	if *rounds > 0 {
		fmt.Fprintf(os.Stderr, "rivals: at most %s\n", planned(have, chosen, wanted, *rounds, o.each).Round(time.Minute))
		if err := measureAll(ctx, o, have, chosen, wanted, *rounds); err != nil {
			return err
		}
	}
	return study.WritePage(*page, pageOf(have.All))
}

// sizesInTurns measures the missing rounds of the sizes, and writes their page.
func sizesInTurns(ctx context.Context, o options, chosen []services.Case, rounds int) error {
	have, err := study.ReadLines[sizedPiece]("bench/rivals/sizes.jsonl.gz")
	if err != nil {
		return err
	}
	sharded, err := study.ReadLines[shardedPiece]("bench/rivals/shards.jsonl.gz")
	if err != nil {
		return err
	}
	if rounds > 0 {
		var large, small []services.Case
		for _, c := range chosen {
			if slices.Contains(shardedServices, c.Name) {
				small = append(small, c)
			}
			if slices.Contains(sizedServices, c.Name) {
				large = append(large, c)
			}
		}
		if err = measureShards(ctx, o, sharded, small, rounds); ctx.Err() == nil {
			err = errors.Join(err, measureSizes(ctx, o, have, large, rounds))
		}
	}
	return errors.Join(err, study.WritePage("docs/results/sizes.md", sizesPage(have.All, sharded.All)))
}

// chosenServices are the named services, or those of a list.
func chosenServices(names string, list []string) ([]services.Case, error) {
	if names != "" {
		list = strings.Split(names, ",")
	}
	var chosen []services.Case
	for _, name := range list {
		c, ok := services.Find(name)
		if !ok {
			return nil, fmt.Errorf("-services %.60q: bench/services has none of that name", name)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

// chosenVariants are the named variants, or all.
func chosenVariants(names string) ([]variant, error) {
	if names == "" {
		return variants, nil
	}
	var chosen []variant
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-variants %.60q: none has that name", name)
		}
		chosen = append(chosen, variants[i])
	}
	return chosen, nil
}

// planned is how long what is missing takes at most.
func planned(have *study.Lines[piece], chosen []services.Case, wanted []variant, rounds int, each time.Duration) (all time.Duration) {
	const around = 4 * time.Second // to start, warm up and drain
	for _, c := range chosen {
		for _, v := range wanted {
			for round := 1; round <= rounds; round++ {
				if !measured(have.All, c.Name, v.name, round) {
					step := max(each, forecast.MeasuredPeriods*v.period) + around
					all += around + c.Warm + v.decides(c) + time.Duration(len(loadsOf(c)))*step
				}
			}
		}
	}
	return all
}

func measureAll(ctx context.Context, o options, have *study.Lines[piece], chosen []services.Case, wanted []variant, rounds int) error {
	var failed []error
	for _, c := range chosen {
		if err := measureService(ctx, o, have, c, wanted, rounds); err != nil {
			fmt.Fprintf(os.Stderr, "rivals: %s: %v\n", c.Name, err)
			failed = append(failed, fmt.Errorf("%s: %w", c.Name, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(failed...)
}

// installed says what a service, or its neighbour, needs and this host has not.
func installed(c services.Case) error {
	for _, s := range []services.Case{c, beside()} {
		if missing := s.Missing(); missing != "" {
			return errors.New(missing)
		}
	}
	return nil
}

func measureService(ctx context.Context, o options, have *study.Lines[piece], c services.Case, wanted []variant, rounds int) error {
	if err := installed(c); err != nil {
		return err
	}
	if !measured(have.All, c.Name, usual.name, 0) {
		p, err := measure(ctx, o, c, usual, 0, nil)
		if err != nil {
			return err
		}
		if err := have.Add(p); err != nil {
			return err
		}
	}
	base := baseOf(have.All, c.Name)
	if base == nil {
		return errors.New("its client measured nothing without a limit, so that there is no objective")
	}
	for round, i := range study.Turns(rounds, len(wanted)) {
		v := wanted[i]
		if measured(have.All, c.Name, v.name, round) {
			continue
		}
		p, err := measure(ctx, o, c, v, round, base)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s  %s: round %d: %s\n", time.Now().Format(time.TimeOnly), c.Name, round, p.text())
		if err := have.Add(p); err != nil {
			return err
		}
	}
	return nil
}
