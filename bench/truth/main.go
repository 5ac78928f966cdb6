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
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/test/study"
)

func main() { services.Main("truth", run) }

// files are what the study reads and writes.
type files struct {
	out, truthOut, first, compared, kept, samples string
}

// todo is what one call does.
type todo struct {
	files
	options
	cases           string
	again, pageOnly bool
	demand          string
}

// readFlags reads the command line.
func readFlags() (do todo, err error) {
	exe := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM` to try")
	dir := flag.String("keep", ".cache/truth", "`FOLDER` of the recordings")
	flag.StringVar(&do.out, "out", "docs/results/fix.md", "`FILE` to write")
	flag.StringVar(&do.truthOut, "truth-out", "docs/results/truth.md", "`FILE` to write the scores of explain and forecast to")
	flag.StringVar(&do.first, "first", "bench/truth/first.jsonl.gz",
		"`FILE` with the results of services from when the program met them for the first time")
	flag.StringVar(&do.compared, "compared", "internal/sim/forecast/compared.json", "`FILE` to write their forecasts to, beside what came")
	flag.StringVar(&do.kept, "results", "bench/truth/results.jsonl.gz",
		"`FILE` with the results that the pages are made of, a line for each case measured to its end")
	flag.StringVar(&do.samples, "samples", "bench/truth/sampled.jsonl.gz", "`FILE` with what look said of the services, for -sampled")
	flag.StringVar(&do.cases, "cases", "", "`NAMES` of cases to measure, also if they have a result; none: all without one")
	flag.BoolVar(&do.again, "again", false, "measure nothing: explain and forecast the kept recordings again, and write the pages")
	flag.BoolVar(&do.pageOnly, "page-only", false, "measure nothing: write the page of the kept cases")
	flag.StringVar(&do.demand, "demand", "", "measure nothing: record cases without a quota, and write their demand to "+
		"`FILE`, for generated fleets; without -cases, all that have a kind")
	flag.BoolVar(&do.tryOnly, "try", false, "start each case, load it for 3 s, show what came, and keep nothing")
	flag.DurationVar(&do.sampled, "sampled", 0, "start each case, load it, let look take samples of it for at most that long, show whether "+
		"the cause is right, and keep that alone")
	flag.IntVar(&do.rounds, "rounds", 3, "how often each remedy is measured")
	flag.DurationVar(&do.each, "each", 8*time.Second, "how long each measurement takes at least")
	flag.BoolVar(&do.equal, "equal", false, "measure no remedy that grants more CPU than the limit: two thirds of the "+
		"time, and fix is judged all the same")
	flag.Parse()
	if flag.NArg() > 0 {
		return do, fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return do, err
	}
	if do.keep, err = filepath.Abs(*dir); err != nil {
		return do, err
	}
	do.exe, err = filepath.Abs(*exe)
	return do, err
}

// records are all that was measured: the results that the pages are made of, those of services that were met for the first time, and what
// look said.
type records struct {
	files
	measured *results
	met      []caseRun
	looked   *study.Lines[sampledLook]
}

func read(f files) (r records, err error) {
	r.files = f
	first, err := readResults(f.first)
	if err != nil {
		return r, err
	}
	r.met = first.all(services.Cases())
	if r.measured, err = readResults(f.kept); err != nil {
		return r, err
	}
	r.looked, err = study.ReadLines[sampledLook](f.samples)
	return r, err
}

// write writes the pages and the comparisons.
func (r *records) write() error {
	return errors.Join(writePage(r.measured, r.out,
		func(testCases []services.Case, runs []caseRun) string { return markdown(testCases, runs, r.met) }),
		writePage(r.measured, r.truthOut, func(testCases []services.Case, runs []caseRun) string {
			return truthMarkdown(testCases, runs, r.looked.All)
		}),
		writeCompared(r.compared, services.Cases(), r.met))
}

func run(ctx context.Context) error {
	do, err := readFlags()
	if err != nil {
		return err
	}
	chosen, err := choose(do.cases)
	if err != nil {
		return err
	}
	have, err := read(do.files)
	if err != nil {
		return err
	}
	if do.again {
		if err := lookAgain(ctx, do.options, have.measured, chosen); err != nil {
			return err
		}
	}
	if do.again || do.pageOnly {
		return have.write()
	}
	if do.host, err = cgroup.Open("/proc"); err != nil {
		return err
	}
	switch {
	case do.demand != "" && do.cases == "":
		chosen = slices.DeleteFunc(chosen, func(c services.Case) bool { return c.Demanded == "" })
		fallthrough
	case do.demand != "":
		return recordDemands(ctx, do.options, chosen, do.demand)
	case do.cases == "" && !do.keepsNothing():
		chosen = slices.DeleteFunc(chosen, func(c services.Case) bool { return have.measured.of(c.Name).Complete })
	}
	var failed []error
	for _, c := range chosen {
		err := have.add(ctx, do.options, c)
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

// add measures a case, keeps what came and writes the pages.
func (r *records) add(ctx context.Context, o options, c services.Case) error {
	k := caseRun{Case: c.Name}
	if err := measure(ctx, o, c, &k); err != nil {
		return err
	}
	switch {
	case o.sampled > 0:
		if err := keepSampled(r.looked, sampledLook{k.Made, c.Name, k.took.Seconds(), k.Load, *k.Look}); err != nil {
			return err
		}
	case o.keepsNothing():
		return nil
	default:
		if err := r.measured.put(k); err != nil {
			return err
		}
	}
	return r.write()
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
