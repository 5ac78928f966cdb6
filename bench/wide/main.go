// Command wide measures what the remedies are worth on 8 to 32 CPUs, in a guest of the lab whose clock runs slower than the
// host's, and writes docs/results/wide.md: what `make results-wide` and `make accuracy-wide` run.
//
// # Problem
//
// A search for the highest load within an objective takes 3 to 5 loads of some seconds for each remedy and repeat. A second
// of a guest with 16 busy CPUs takes 20 seconds of this host, one with 8 takes 10. All shapes and remedies are a night of a
// quiet machine, which nobody has in one piece. So there is a plan (stages), in order of worth, whose grid is measured on 8 CPUs.
//
// # Rule
//
// The loads are fixed ones: 30, 40 ... 90 % of what the limit's CPUs can carry. A piece is one shape under one remedy at one load
// with the requests of one repeat, some seconds long. It is judged by itself, and kept as a line of records.jsonl.gz. A search
// halves the interval on that grid: three pieces find between which two loads the objective is lost, and p99 at these two, taken to
// grow by equal factors between them, gives the load. Since loads are the same for all, remedies are compared at the
// same load with the same requests, and latencies of further repeats are added to those of earlier ones.
//
// # Worked example
//
// The quota's p99 is 30 ms at 40 % and 90 ms at 50 %. The bound of 50 ms is crossed at 40 + 10 × ln(50/30)/ln(90/30) = 44.6 %.
//
// # Limits
//
// A piece of 3 s has 30 periods: one stop is 3 % of them. What two remedies differ by in one repeat is one draw of arrivals.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/test/lab/slow"
)

// children are what this program starts itself as.
var children = map[string]func() int{
	workload.ChildCommand: workload.ChildMain, service.Command: service.Main, loadgen.Command: loadgen.Main, threads.Command: threads.Main,
	loaderCommand: loaderMain,
}

func main() {
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		os.Exit(children[os.Args[1]]())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) == 2 && os.Args[1] == insideCommand {
		err = inside(ctx)
	} else {
		err = run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wide:", err)
		os.Exit(1)
	}
}

// job is what one call does.
type job struct {
	missing func(*records) []piece
	records *records
	page    string
	keep    string // folder of recordings
	until   time.Time
	say     io.Writer
	alone   study.Alone // held while a guest runs
	// later are recordings to forecast when the guest has ended: a forecast takes the CPUs that the guest needs.
	later []func() error
}

func run(ctx context.Context) error {
	what := flag.String("what", "service", "service or accuracy")
	lab := flag.String("lab", "bin/lab", "the lab `PROGRAM`")
	tool := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM`, whose fix is measured")
	file := flag.String("records", "bench/wide/records.jsonl.gz", "`FILE` with a line for each piece that was measured")
	page := flag.String("page", "docs/results/wide.md", "`FILE` to write")
	keep := flag.String("keep", ".cache/wide", "`FOLDER` of recordings")
	last := flag.Duration("for", 30*time.Minute, "begin no piece that would end later; 0: only write the page")
	only := flag.Int("pieces", 0, "measure at most so `MANY` pieces; 0: as many as fit")
	plan := flag.Bool("plan", false, "print the plan, what of it is measured, and the hours that are left; measure nothing")
	part := flag.String("part", "", "of service, measure only the parts of the plan that have `TEXT` in their name")
	alone := flag.String("alone", "", "hold a lock on `FILE` while a guest runs: who starts other work by 'flock FILE COMMAND' waits until it has ended")
	k := flag.Int("slow", 0, "measure the first missing pieces at this `K` instead of their own; 0: their own")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	missing, ok := map[string]func(*records) []piece{"service": missingOf(*part), "accuracy": missingScenarios}[*what]
	if !ok {
		return fmt.Errorf("-what %s: choose service or accuracy", *what)
	}
	if !slices.ContainsFunc(stages(), func(s stage) bool { return strings.Contains(s.about, *part) }) {
		return fmt.Errorf("-part %q: no part of the plan has that in its name; -plan lists them", *part)
	}
	have, err := readRecords(*file)
	if err != nil {
		return err
	}
	if *plan {
		return printPlan(os.Stdout, have)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	j := &job{missing: missing, records: have, page: *page, keep: *keep, until: time.Now().Add(*last), say: os.Stderr}
	if j.alone, err = study.OpenAlone(*alone); err != nil {
		return err
	}
	if *k > 0 {
		j.missing = func(r *records) (all []piece) {
			for _, p := range missing(r) {
				if p.Machine.K = *k; r.wanted(p) {
					all = append(all, p)
				}
			}
			return all
		}
	}
	if *last > 0 {
		if err := j.measure(ctx, &guest{lab: *lab, program: program, tool: *tool, say: os.Stderr, done: j.done}, *only); err != nil {
			return err
		}
	}
	return j.write()
}

// mostNoisy is how many pieces in a row may be of no use before the host is taken to be too busy.
const mostNoisy = 6

// measure measures what is missing, a guest after the other, until the time is over.
func (j *job) measure(ctx context.Context, g *guest, only int) error {
	noisy, began := 0, len(j.records.All)
	done := g.done
	g.done = func(p piece, m message, release string, c slow.Result, failed string) error {
		if noisy++; failed == "" {
			noisy = 0
		}
		return done(p, m, release, c, failed)
	}
	for noisy < mostNoisy {
		now := batch(j.missing(j.records), time.Until(j.until))
		if only > 0 {
			now = now[:min(len(now), only-(len(j.records.All)-began))]
		}
		if len(now) == 0 {
			fmt.Fprintf(j.say, "wide: %d pieces measured; the next ones: %d, or too little time is left for one\n", len(j.records.All)-began, len(j.missing(j.records)))
			return nil
		}
		before := len(j.records.All)
		err := j.alone.Do(ctx, func() error { return g.run(ctx, now) })
		for _, forecast := range j.later {
			err = errors.Join(err, forecast())
		}
		j.later = nil
		if ctx.Err() != nil {
			return ctx.Err() // what had ended is kept
		}
		if err != nil && len(j.records.All) == before {
			return err
		}
		if err != nil {
			fmt.Fprintln(j.say, "wide:", err)
		}
	}
	return fmt.Errorf("%d pieces in a row were of no use: end what else runs on this host, and start again; what was measured is kept", noisy)
}

// done keeps a piece and writes the page. One that failed is told, and measured again by a later guest.
func (j *job) done(p piece, m message, release string, calibration slow.Result, failed string) error {
	if failed != "" {
		if calibration.OK {
			j.records.failed[p]++
		}
		fmt.Fprintf(j.say, "%s  %v: not used: %s (%s)\n", time.Now().Format("15:04:05"), p, failed, record{Point: m.Point}.short())
		return nil
	}
	r := record{Piece: p, Made: study.Now(time.Now()), Release: release, Calibration: calibration, Point: m.Point, Outcome: m.Outcome, Costs: m.Costs, Narrow: m.Narrow, Fix: m.Fix}
	if p.Kind == recording {
		name := filepath.Join(j.keep, strings.NewReplacer(" ", "-", "%", "", ",", "").Replace(p.String())+".rec")
		if err := os.MkdirAll(j.keep, 0o755); err != nil {
			return err
		}
		if err := renameio.WriteFile(name, m.Recording, 0o644); err != nil {
			return err
		}
		j.later = append(j.later, func() error {
			r.Forecast = forecastOf(p, m.Recording, m.Load)
			return j.add(r)
		})
		return nil
	}
	return j.add(r)
}

// add keeps a record, says what it came to, and writes the page.
func (j *job) add(r record) error {
	if err := j.records.Add(r); err != nil {
		return err
	}
	fmt.Fprintf(j.say, "%s  %v: %s; host %.0f s\n", time.Now().Format("15:04:05"), r.Piece, r.short(), r.Calibration.HostSeconds)
	return j.write()
}

// write writes the page.
func (j *job) write() error { return study.WritePage(j.page, markdown(j.records)) }

// short is what a piece came to, in a line.
func (r record) short() string {
	switch {
	case r.Point != nil:
		return fmt.Sprintf("p50 %s, p99 %s ms, %s CPUs, met %v", study.Decimals(r.Point.P50, 1), study.Decimals(r.Point.P99, 1), study.Decimals(r.Point.CPUUsed, 2), r.Point.Met)
	case r.Narrow != nil:
		return fmt.Sprintf("%.4g, met %v", r.Narrow.Value, r.Narrow.Met)
	case r.Fix != nil && r.Fix.left() != nil:
		return fmt.Sprintf("fix left %v after %.0f s", r.Fix.left(), r.Fix.Seconds)
	case r.Fix != nil:
		return fmt.Sprintf("fix left nothing after %.0f s: %s", r.Fix.Seconds, r.Fix.Why)
	case r.Forecast != nil && r.Forecast.Why != "":
		return "recorded; no forecast: " + r.Forecast.Why
	case r.Forecast != nil:
		return fmt.Sprintf("recorded, %d rows of a forecast", len(r.Forecast.Rows))
	}
	return "measured"
}
