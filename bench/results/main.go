// Command results measures what the project's remedies are worth on this host
// and writes docs/results.md: what `make results` runs.
//
// It writes the page after every part, so that one that is interrupted leaves
// what it has measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/bench"
	"github.com/unthrottle/unthrottle/cgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

// scale is how much is measured.
type scale struct {
	name                        string
	repeats, steps              int
	step                        time.Duration
	spiralRepeats, priceRepeats int
	priceStep                   time.Duration
}

var scales = []scale{
	{"full", 5, 3, 2 * time.Second, 2, 3, 4 * time.Second},
	{"quick", 3, 2, 2 * time.Second, 1, 2, 4 * time.Second},
}

func run(ctx context.Context) error {
	exe := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM` to run as service and generator")
	out := flag.String("out", "docs/results.md", "`FILE` to write")
	name := flag.String("scale", "full", "full (under an hour) or quick (about 20 minutes)")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	path, err := filepath.Abs(*exe)
	if err != nil {
		return err
	}
	host, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	for _, s := range scales {
		if s.name == *name {
			return measure(ctx, bench.Options{Host: host, Exe: path, Progress: progress, Patience: patience}, s, *out)
		}
	}
	return fmt.Errorf("-scale %s: choose full or quick", *name)
}

// patience with a busy host: what is measured here once is read for long.
const patience = 30

func progress(e bench.Event) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), e.Doing)
}

// measure does one part after the other, and writes what there is after each. A
// part that cannot be measured is written down as that.
func measure(ctx context.Context, o bench.Options, s scale, out string) error {
	page := newPage(s)
	var failed []error
	part := func(name string, do func() error) error {
		if err := do(); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			page.failed = append(page.failed, fmt.Sprintf("%s: not measured: %v", name, err))
		}
		return page.write(out)
	}
	for _, shape := range bench.Shapes() {
		err := part("shape "+shape, func() error {
			o := o
			o.Shape, o.Repeats, o.Steps, o.Step = shape, s.repeats, s.steps, s.step
			r, err := bench.Run(ctx, o)
			if err == nil {
				page.shapes = append(page.shapes, r)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	err := part("the spike", func() error {
		r, err := bench.RunSpiral(ctx, o, s.spiralRepeats)
		if err == nil {
			page.spiral = &r
		}
		return err
	})
	if err != nil {
		return err
	}
	err = part("the price", func() error {
		o := o
		o.Shape, o.Repeats, o.Step = "pool", s.priceRepeats, s.priceStep
		r, err := bench.RunPrice(ctx, o)
		if err == nil {
			page.price = &r
		}
		return err
	})
	if err != nil {
		return err
	}
	page.done = true
	return errors.Join(append(failed, page.write(out))...)
}
