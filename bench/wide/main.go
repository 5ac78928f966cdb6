// Command wide measures what the remedies are worth on 8 to 32 CPUs, in a guest of the lab whose clock runs slower than the
// host's, and writes docs/results/wide.md: what `make results-wide` runs.
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
// Real services (served.go) have one load each, all variants in turns, and several rounds.
//
// # Limits
//
// A piece of 3 s has 30 periods: one stop is 3 % of them. What two remedies differ by in one repeat is one draw of arrivals.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/test/lab/slow"
	"github.com/unthrottle/unthrottle/test/study"
)

// children are what this program starts itself as.
var children = map[string]func() int{
	workload.ChildCommand: workload.ChildMain, service.Command: service.Main, loadgen.Command: loadgen.Main, threads.Command: threads.Main,
}

func main() {
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		os.Exit(children[os.Args[1]]())
	}
	if code, ok := services.ClientMain(); ok {
		os.Exit(code)
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
	records *records
	page    string
	// next are the pieces that can be measured now.
	next  func(*records) []piece
	until time.Time
	say   io.Writer
}

func run(ctx context.Context) error {
	lab := flag.String("lab", "bin/lab", "the lab `PROGRAM`")
	tool := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM`, whose fix is measured")
	file := flag.String("records", "bench/wide/records.jsonl.gz", "`FILE` with a line for each piece that was measured")
	page := flag.String("page", "docs/results/wide.md", "`FILE` to write")
	last := flag.Duration("for", 30*time.Minute, "begin no piece that would end later; 0: only write the page")
	only := flag.String("services", "", "measure only real services, these `NAMES`, or all")
	plan := wholePlan()
	flag.IntVar(&plan.rounds, "rounds", plan.rounds, "`rounds` of each real service")
	flag.IntVar(&plan.k, "k", plan.k, "the `factor` by which the clock of guests with real services is slower than the host's")
	flag.Float64Var(&plan.seconds, "seconds", plan.seconds, "measure real services for so many `seconds` of guest time; others than the "+
		"default are for trials, with -records and -page elsewhere")
	variants := flag.String("variants", "", "`NAMES` of the variants of real services, else all")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	if !(plan.seconds >= 1 && plan.seconds <= 60) {
		return fmt.Errorf("-seconds %g: give 1 to 60", plan.seconds)
	}
	if plan.k < 1 || plan.k > slow.MostSlow || plan.rounds < 1 || plan.rounds > mostRounds {
		return fmt.Errorf("-k %d -rounds %d: a factor is 1 to %d, and rounds are 1 to %d", plan.k, plan.rounds, slow.MostSlow, mostRounds)
	}
	if err := plan.choose(*only, *variants); err != nil {
		return err
	}
	have, err := readRecords(*file)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	j := &job{records: have, page: *page, until: time.Now().Add(*last), say: os.Stderr}
	j.next = func(have *records) []piece {
		if shapes := missing(have); *only == "" && len(shapes) > 0 {
			return shapes
		}
		return plan.missing(have)
	}
	if hours := plan.hours(have); hours > 0 && *last > 0 {
		fmt.Fprintf(j.say, "wide: what is missing of real services takes about %.1f hours\n", hours)
	}
	if *last > 0 {
		if err := j.measure(ctx, &guest{lab: *lab, program: program, tool: *tool, say: os.Stderr, done: j.done}); err != nil {
			return err
		}
	}
	return j.write()
}

// mostNoisy is how many pieces in a row may be of no use before the host is taken to be too busy.
const mostNoisy = 6

// measure measures what is missing, a guest after the other, until the time is over.
func (j *job) measure(ctx context.Context, g *guest) error {
	noisy, began := 0, len(j.records.All)
	done := g.done
	g.done = func(p piece, m message, release string, c slow.Result, failed string) error {
		if noisy++; failed == "" {
			noisy = 0
		}
		return done(p, m, release, c, failed)
	}
	for noisy < mostNoisy {
		now := batch(j.next(j.records), time.Until(j.until))
		if len(now) == 0 {
			fmt.Fprintf(j.say, "wide: %d pieces measured; the next ones: %d, or too little time is left for one\n",
				len(j.records.All)-began, len(j.next(j.records)))
			return nil
		}
		before := len(j.records.All)
		err := g.run(ctx, now)
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
	return fmt.Errorf("%d pieces in a row were of no use: end what else runs on this host, and start again; what was "+
		"measured is kept", noisy)
}

// done keeps a piece and writes the page. One that failed is told, and measured again by a later guest.
func (j *job) done(p piece, m message, release string, calibration slow.Result, failed string) error {
	if failed != "" {
		if calibration.OK {
			j.records.failed[p]++
		}
		fmt.Fprintf(j.say, "%s  %v: not used: %s (%s)\n", time.Now().Format("15:04:05"), p, failed,
			record{Point: m.Point, Served: m.Served}.short())
		return nil
	}
	r := record{Piece: p, Made: study.Now(time.Now()), Release: release, Calibration: calibration, Point: m.Point, Fix: m.Fix,
		Served: m.Served}
	if err := j.records.Add(r); err != nil {
		return err
	}
	fmt.Fprintf(j.say, "%s  %v: %s; host %.0f s\n", time.Now().Format("15:04:05"), p, r.short(), calibration.HostSeconds)
	return j.write()
}

// write writes the page.
func (j *job) write() error { return study.WritePage(j.page, markdown(j.records)) }

// short is what a piece came to, in a line.
func (r record) short() string {
	switch {
	case r.Served != nil:
		return fmt.Sprintf("p50 %s, p99 %s ms, %s CPUs, %s periods throttled", study.Decimals(r.Served.P50, 1),
			study.Decimals(r.Served.P99, 1), study.Decimals(r.Served.CPUUsed, 2), throttledText(&r.Served.figures))
	case r.Point != nil:
		return fmt.Sprintf("p50 %s, p99 %s ms, %s CPUs, met %v", study.Decimals(r.Point.P50, 1),
			study.Decimals(r.Point.P99, 1), study.Decimals(r.Point.CPUUsed, 2), r.Point.Met)
	case r.Fix != nil && r.Fix.left() != nil:
		return fmt.Sprintf("fix left %v after %.0f s", r.Fix.left(), r.Fix.Seconds)
	case r.Fix != nil:
		return fmt.Sprintf("fix left nothing after %.0f s: %s", r.Fix.Seconds, r.Fix.Why)
	}
	return "measured"
}
