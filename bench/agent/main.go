// Command bench measures the cost of observing. It measures CPU time and memory of unthrottle's sampler, of a
// bare loop over the same files, and of cAdvisor's library. All run at the same time over the same cgroups,
// which it makes and removes. See docs/reference/bench.md.
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
}

func full() plan {
	return plan{warm: 12 * time.Second, window: 40 * time.Second,
		scenarios: []scenario{{50, 5}, {50, 50}, {200, 20}, {200, 200}, {1000, 100}, {1000, 1000}}}
}

func quick() plan {
	return plan{warm: 5 * time.Second, window: 10 * time.Second, scenarios: []scenario{{50, 5}, {50, 50}, {200, 20}, {200, 200}}}
}

// smoke shows that it runs. Its figures mean nothing.
func smoke() plan {
	return plan{warm: time.Second, window: 2 * time.Second, scenarios: []scenario{{5, 5}}}
}

func main() {
	variant := flag.String("arm", "", "run one variant (used by the benchmark itself)")
	job := flag.String("job", "", "what the variant is to do")
	var others programs
	flag.StringVar(&others.cadvisor, "cadvisor", "", "the cadvisor program beside this one; empty: without it")
	flag.StringVar(&others.unthrottle, "unthrottle", "", "the unthrottle program, to run its agent; empty: without it")
	short := flag.Bool("quick", false, "fewer cgroups, shorter windows")
	least := flag.Bool("smoke", false, "five cgroups for two seconds: whether it runs at all")
	flag.Parse()
	runtime.LockOSThread()
	var err error
	switch {
	case *variant != "":
		err = runVariant(*variant, *job)
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
		err = bench(ctx, p, others)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench runs all scenarios and prints the table.
func bench(ctx context.Context, p plan, others programs) error {
	var t table
	for _, s := range p.scenarios {
		fmt.Fprintf(os.Stderr, "bench: %v, %v ...\n", s, p.warm+p.window)
		results, err := measure(ctx, s, p, others)
		if err != nil {
			return err
		}
		t.add(s, results)
	}
	t.print(os.Stdout)
	return nil
}
