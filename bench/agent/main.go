// Command bench measures the cost of observing. First it runs the whole agent alone. Then it
// measures unthrottle's sampler, a bare loop over the same files, and cAdvisor's library, all at the same time over the
// same cgroups, which it makes and removes. See docs/reference/bench.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// scenario is one row group of the table.
type scenario struct {
	cgroups int
	stopped int // how many of them are stopped again and again
}

func (s scenario) String() string { return fmt.Sprintf("%d cgroups, %d stopped", s.cgroups, s.stopped) }

// programs that are measured beside our own variants.
type programs struct{ cadvisor, unthrottle string }

// plan has the scenarios and the times of a benchmark.
type plan struct {
	scenarios    []scenario
	warm, window time.Duration
	// Of the agent alone: what counts as its start, how often its metrics are collected, how long the probe's programs are
	// measured, and whether recordings are.
	start, scrape, programs time.Duration
	recordings              bool
}

func full() plan {
	p := quick()
	p.warm, p.window = 12*time.Second, 40*time.Second
	p.scenarios = append(p.scenarios, scenario{1000, 100}, scenario{1000, 1000})
	return p
}

func quick() plan {
	return plan{warm: 5 * time.Second, window: 10 * time.Second, scenarios: []scenario{{50, 5}, {50, 50}, {200, 20}, {200, 200}},
		start: 3 * time.Second, scrape: 15 * time.Second, programs: 10 * time.Second, recordings: true}
}

// smoke shows that it runs. Its figures mean nothing.
func smoke() plan {
	return plan{warm: time.Second, window: 2 * time.Second, scenarios: []scenario{{5, 5}},
		start: time.Second, scrape: time.Second, programs: time.Second}
}

func main() {
	variant := flag.String("variant", "", "run one variant (used by the benchmark itself)")
	job := flag.String("job", "", "what the variant is to do")
	var others programs
	flag.StringVar(&others.cadvisor, "cadvisor", "", "the cadvisor program beside this one; empty: without it")
	flag.StringVar(&others.unthrottle, "unthrottle", "", "the unthrottle program, to run its agent; empty: without it")
	short := flag.Bool("quick", false, "fewer cgroups, shorter windows")
	least := flag.Bool("smoke", false, "five cgroups for two seconds: whether it runs at all")
	var k keep
	flag.StringVar(&k.runs, "runs", "", "a `FILE` with the agent's figures of earlier runs, to which this run is added")
	flag.StringVar(&k.label, "label", "", "what this run is called in the file and on the page, for example the "+
		"version; empty: the version")
	flag.StringVar(&k.page, "page", "", "a `FILE` for the page of the last run in -runs")
	flag.StringVar(&k.readme, "readme", "", "a `FILE` whose line about the cost gets this run's figures")
	show := flag.Bool("show", false, "measure nothing, and write the page and README's figure of the runs in -runs")
	flag.Parse()
	runtime.LockOSThread()
	var err error
	switch {
	case *variant != "":
		err = runVariant(*variant, *job)
	case *show:
		var all []run
		if all, err = k.read(); err == nil {
			err = k.show(all)
		}
	default:
		p := full()
		switch {
		case *least:
			p = smoke()
		case *short:
			p = quick()
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = bench(ctx, p, others, k)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench runs all scenarios and prints the tables. With -runs it measures the agent alone.
func bench(ctx context.Context, p plan, others programs, k keep) error {
	var t table
	r, err := newRun(k.label, others.unthrottle)
	if err != nil {
		return err
	}
	for _, s := range p.scenarios {
		if others.unthrottle != "" {
			fmt.Fprintf(os.Stderr, "bench: %v, the agent alone ...\n", s)
			cost, err := measureAgent(ctx, s, p, others.unthrottle)
			if err != nil {
				return err
			}
			r.Agents = append(r.Agents, cost)
		}
		if k.runs != "" {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %v, %v ...\n", s, p.warm+p.window)
		results, err := measure(ctx, s, p, others)
		if err != nil {
			return err
		}
		t.add(s, results)
	}
	if len(r.Agents) > 0 {
		fmt.Println(r.Totals())
	}
	if k.runs != "" {
		return k.add(r)
	}
	t.print(os.Stdout)
	return nil
}
