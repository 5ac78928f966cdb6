// Command truth tries explain, forecast and fix on real services and writes docs/results/fix.md and
// docs/results/truth.md: what `make truth` runs.
//
// # Problem
//
// Our own workloads name their threads and do one thing each. Real services share
// names, fork, collect garbage and talk to clients. Only they show whether the
// remedy that fix chooses is the best one.
//
// # Rule
//
// Each case is one service from Debian's packages, on loopback, in a cgroup of its
// own with a limit. An open-loop client outside that cgroup measures latency from
// the intended time of each request. The tool records and forecasts the service, then
// runs fix on it and notes what fix chose. It restores everything. Then it applies
// every remedy for real, in rounds that also leave the service alone, and measures
// each. [judge] compares the chosen remedy with the best at equal CPU.
//
// A case measured to its end is a result, which the tree keeps in one file, with its date and
// the commit that was tried. The pages are made of all results, measured on whichever
// day, and name the services that have none. What came of a service when the program met it for the first time stays in a
// file of its own, first: the program is told by it how far its forecasts are off.
//
// # Worked example
//
//	TRUTH=redis-bgsave make truth
//
// measures that case alone, keeps its result in bench/truth/results.jsonl.gz, and writes the pages of all results.
//
// # Limits
//
// A host with two CPUs and other work on it gives noisy figures. The page shows the
// others' CPU use beside each figure; ratios within a case are worth more than
// milliseconds.
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
	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

func main() { services.Main("truth", run) }

func run(ctx context.Context) error {
	exe := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM` to try")
	out := flag.String("out", "docs/results/fix.md", "`FILE` to write")
	dir := flag.String("keep", ".cache/truth", "`FOLDER` of the recordings")
	first := flag.String("first", "bench/truth/first.jsonl.gz",
		"`FILE` with the results of services from when the program met them for the first time")
	compared := flag.String("compared", "internal/sim/forecast/compared.json", "`FILE` to write their forecasts to, beside what came")
	kept := flag.String("results", "bench/truth/results.jsonl.gz",
		"`FILE` with the results that the pages are made of, a line for each case measured to its end")
	samples := flag.String("samples", "bench/truth/sampled.jsonl.gz", "`FILE` with what look said of the services, for -sampled")
	which := flag.String("cases", "", "`NAMES` of cases to measure, also if they have a result; none: all without one")
	truthOut := flag.String("truth-out", "docs/results/truth.md", "`FILE` to write the scores of explain and forecast to")
	again := flag.Bool("again", false, "measure nothing: explain and forecast the kept recordings again, and write the pages")
	pageOnly := flag.Bool("page-only", false, "measure nothing: write the page of the kept cases")
	o := options{}
	demand := flag.String("demand", "", "measure nothing: record cases without a quota, and write their demand to "+
		"`FILE`, for generated fleets; without -cases, all that have a kind")
	flag.BoolVar(&o.tryOnly, "try", false, "start each case, load it for 3 s, show what came, and keep nothing")
	flag.DurationVar(&o.sampled, "sampled", 0, "start each case, load it, let look take samples of it for at most that long, show whether "+
		"the cause is right, and keep that alone")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each remedy is measured")
	flag.DurationVar(&o.each, "each", 8*time.Second, "how long each measurement takes at least")
	flag.BoolVar(&o.equal, "equal", false, "measure no remedy that grants more CPU than the limit: two thirds of the "+
		"time, and fix is judged all the same")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	chosen, err := choose(*which)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	if o.keep, err = filepath.Abs(*dir); err != nil {
		return err
	}
	if o.exe, err = filepath.Abs(*exe); err != nil {
		return err
	}
	firstMet, err := readResults(*first)
	if err != nil {
		return err
	}
	measured, err := readResults(*kept)
	if err != nil {
		return err
	}
	looked, err := study.ReadLines[sampledLook](*samples)
	if err != nil {
		return err
	}
	met := firstMet.all(services.Cases())
	write := func() error {
		return errors.Join(writePage(measured, *out,
			func(testCases []services.Case, runs []caseRun) string { return markdown(testCases, runs, met) }),
			writePage(measured, *truthOut, func(testCases []services.Case, runs []caseRun) string {
				return truthMarkdown(testCases, runs, looked.All)
			}),
			writeCompared(*compared, services.Cases(), met))
	}
	if *again {
		if err := lookAgain(ctx, o, measured, chosen); err != nil {
			return err
		}
	}
	if *again || *pageOnly {
		return write()
	}
	if o.host, err = cgroup.Open("/proc"); err != nil {
		return err
	}
	if *demand != "" {
		if *which == "" {
			chosen = slices.DeleteFunc(chosen, func(c services.Case) bool { return c.Demanded == "" })
		}
		return recordDemands(ctx, o, chosen, *demand)
	}
	var failed []error
	for _, c := range chosen {
		if *which == "" && measured.of(c.Name).Complete && !o.keepsNothing() {
			continue
		}
		k := caseRun{Case: c.Name}
		if err = measure(ctx, o, c, &k); err == nil && !o.keepsNothing() {
			err = errors.Join(measured.put(k), write())
		}
		if err == nil && o.sampled > 0 {
			err = errors.Join(keepSampled(looked, sampledLook{k.Made, c.Name, k.took.Seconds(), k.Load, *k.Look}), write())
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			say("%s: %v", c.Name, err)
			failed = append(failed, fmt.Errorf("%s: %w", c.Name, err))
		}
	}
	return errors.Join(failed...)
}

// choose returns the named cases, in that order, or all.
func choose(names string) ([]services.Case, error) {
	if names == "" {
		return services.Cases(), nil
	}
	var chosen []services.Case
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(services.Cases(), func(c services.Case) bool { return c.Name == name })
		if i < 0 {
			var all []string
			for _, c := range services.Cases() {
				all = append(all, c.Name)
			}
			return nil, fmt.Errorf("-cases %.60q: choose from %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, services.Cases()[i])
	}
	return chosen, nil
}

// lookAgain explains and forecasts the kept recordings of cases by the program as it is now. What was measured stays.
func lookAgain(ctx context.Context, o options, measured *results, testCases []services.Case) error {
	for _, c := range testCases {
		k := measured.of(c.Name)
		if !k.Complete {
			continue
		}
		if _, err := os.Stat(recordedName(o.keep, c.Name)); err != nil {
			say("%s: no recording is kept; measure it again: TRUTH=%s make truth", c.Name, c.Name)
			continue
		}
		t := tool{services.NewTool(o.exe, nil)}
		var err error
		if k.Look, err = t.lookAgain(ctx, recordedName(o.keep, c.Name)); err == nil {
			k.Commit, err = t.Version(ctx)
		}
		if err == nil {
			err = measured.put(k)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		say("%s: %s %s; recommended: %s %s", c.Name, k.Look.Cause, strings.Join(k.Look.Guilty, ", "), k.Look.Answer, k.Look.Recommended)
	}
	return nil
}

// writePage writes a page of all results. Without any result the page stays as it is.
func writePage(measured *results, out string, page func([]services.Case, []caseRun) string) error {
	runs := measured.all(services.Cases())
	if !slices.ContainsFunc(runs, func(k caseRun) bool { return k.Complete }) {
		say("%s: no result is kept in %s; the page stays as it is", out, measured.File)
		return nil
	}
	return study.WritePage(out, page(services.Cases(), runs))
}

// writeCompared writes the forecasts of services that were met for the first time beside what came, for the program to
// say how far such forecasts
// are off.
func writeCompared(path string, testCases []services.Case, first []caseRun) error {
	comparisons := []forecast.Compared{}
	for i, k := range first {
		if !k.Complete || k.Look == nil {
			continue
		}
		for _, e := range scoreOf(testCases[i], k).Effects {
			r := rowOf(k.Look.Rows, e.Variant)
			if e.Fair && r != nil {
				comparisons = append(comparisons, forecast.Compared{Service: k.Case, Remedy: r.Remedy, ForecastMs: e.ForecastMs,
					LowMs: e.Low, HighMs: e.High, CameMs: e.CameMs})
			}
		}
	}
	if len(comparisons) == 0 {
		return nil
	}
	return study.Write(path, comparisons)
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}
