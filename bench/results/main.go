// Command results measures what the project's remedies are worth on this host
// and writes docs/results/service.md: what `make results` runs.
//
// It keeps every part as it ends, and makes the page from the last of each. An
// interrupted run therefore loses only its last part, and parts can be measured one
// at a time.
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

	"github.com/unthrottle/unthrottle/internal/cure/fix/learn"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/study"
)

func main() { study.Main("results", run) }

// scale is how much is measured.
type scale struct {
	name                        string
	repeats, steps              int
	step                        time.Duration
	spiralRepeats, priceRepeats int
	priceStep                   time.Duration
}

var scales = []scale{
	{"full", 5, 3, 2 * time.Second, 2, 3, 5 * time.Second},
	{"quick", 3, 2, 2 * time.Second, 1, 2, 5 * time.Second},
}

func run(ctx context.Context) error {
	exe := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM` to run as service and generator")
	out := flag.String("out", "docs/results/service.md", "`FILE` to write")
	name := flag.String("scale", "full", "full (under an hour) or quick (about 20 minutes)")
	which := flag.String("parts", strings.Join(parts(), ","), "what to measure, in this order; "+none+": only write the page")
	file := flag.String("records", "bench/results/records.jsonl.gz", "`FILE` with a line for each part that was measured")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	chosen := strings.Split(*which, ",")
	for _, part := range chosen {
		if *which != none && !slices.Contains(parts(), part) {
			return fmt.Errorf("-parts %s: choose from %s", part, strings.Join(parts(), ", "))
		}
	}
	have, err := study.ReadLines[measured](*file)
	if err != nil {
		return err
	}
	if *which == none {
		if !complete(have.All) {
			return fmt.Errorf("%s has not each part yet: measure %s", *file, strings.Join(parts(), ", "))
		}
		return study.WritePage(*out, markdown(have.All))
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
			return measure(ctx, capacity.Options{Host: host, Exe: path, Progress: progress, Patience: patience}, s, chosen, have, *out)
		}
	}
	return fmt.Errorf("-scale %s: choose full or quick", *name)
}

// none in place of parts measures nothing.
const none = "none"

// patience with a busy host: a page is measured once and read for long.
const patience = 30

func progress(e capacity.Event) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), e.Doing)
}

// parts are the names of what can be measured, in their usual order.
func parts() []string { return append(capacity.Shapes(), "spike", "price") }

// measure does the chosen parts one after the other, and writes what there is
// after each. A part that cannot be measured is written down as that, unless it
// was measured before.
func measure(ctx context.Context, o capacity.Options, s scale, chosen []string, have *study.Lines[measured], out string) error {
	var failed []error
	for _, name := range chosen {
		m, err := part(ctx, o, s, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			if slices.ContainsFunc(have.All, func(was measured) bool { return was.Part == name }) {
				continue
			}
			m.Failed = err.Error()
		}
		if err := keep(have, m); err != nil {
			return err
		}
		if complete(have.All) { // else the page that is there has more
			if err := study.WritePage(out, markdown(have.All)); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}

// choose records a cgroup of the bench, and then says what fix chooses for it.
func choose(h *cgroup.Host) func(context.Context, cgroup.Group, time.Duration) (func(context.Context) (capacity.Chosen, error), error) {
	return func(ctx context.Context, group cgroup.Group, d time.Duration) (func(context.Context) (capacity.Chosen, error), error) {
		choice, err := learn.Host{Cgroups: h, Root: os.DirFS("/")}.Choice(ctx, group, d)
		return func(ctx context.Context) (capacity.Chosen, error) {
			setting, err := choice(ctx)
			return capacity.Chosen(setting), err
		}, err
	}
}

// part measures one.
func part(ctx context.Context, o capacity.Options, s scale, name string) (m measured, err error) {
	begun := time.Now()
	m = measured{Made: study.Now(begun), Part: name, Scale: s.name}
	defer func() { m.Took = time.Since(begun) }()
	switch name {
	case "spike":
		m.Repeats = s.spiralRepeats
		r, err := capacity.RunSpiral(ctx, o, m.Repeats)
		if err == nil {
			m.Spiral = &r
		}
		return m, err
	case "price":
		o.Shape, o.Repeats, o.Step = "pool", s.priceRepeats, s.priceStep
		m.Repeats, m.Step = o.Repeats, o.Step
		r, err := capacity.RunPrice(ctx, o)
		if err == nil {
			m.Price = &r
		}
		return m, err
	}
	o.Shape, o.Repeats, o.Steps, o.Step = name, s.repeats, s.steps, s.step
	m.Repeats, m.Steps, m.Step = o.Repeats, o.Steps, o.Step
	recorded := recorder{host: o.Host}
	o.Record = recorded.record
	o.Remedies, o.Choose = slices.DeleteFunc(capacity.Variants(), func(name string) bool { return name == capacity.Budget }), choose(o.Host)
	r, err := capacity.Run(ctx, o)
	if err != nil {
		return m, err
	}
	m.Shape = &r
	if m.Predicted, err = recorded.forecast(r); err != nil {
		m.NotPredicted = err.Error()
	}
	return m, nil
}

// measured is one part as it is kept: the page is made from all that are there,
// so that parts can be measured one at a time. One of its results is set.
type measured struct {
	study.Made
	Part   string           `json:"part"`
	Scale  string           `json:"scale"`
	Took   time.Duration    `json:"took_ns"`
	Failed string           `json:"failed,omitempty"` // why there is no result
	Shape  *capacity.Result `json:"shape,omitempty"`
	// Predicted has the forecasts of the shape's rows; NotPredicted says why there are none.
	Predicted    *predicted       `json:"foretold,omitempty"`
	NotPredicted string           `json:"not_foretold,omitempty"`
	Spiral       *capacity.Spiral `json:"spiral,omitempty"`
	Price        *capacity.Price  `json:"price,omitempty"`
	Repeats      int              `json:"repeats"`
	Steps        int              `json:"steps"`
	Step         time.Duration    `json:"step_ns"`
}

// complete tells whether each part was measured.
func complete(all []measured) bool {
	return !slices.ContainsFunc(parts(), func(part string) bool {
		return !slices.ContainsFunc(all, func(m measured) bool { return m.Part == part })
	})
}

// keep keeps a part in place of what was measured of it before, in the parts' usual order.
func keep(have *study.Lines[measured], m measured) error {
	have.All = append(slices.DeleteFunc(have.All, func(was measured) bool { return was.Part == m.Part }), m)
	slices.SortFunc(have.All, func(a, b measured) int { return slices.Index(parts(), a.Part) - slices.Index(parts(), b.Part) })
	return have.Write()
}
