// Command published runs experiments that others have published on hosts with many CPUs, as they are described, in slowed guests of the
// lab, and writes docs/results/published.md: what `make results-published` runs.
//
// # Problem
//
// "Set GOMAXPROCS to the limit, or confine the program to as many CPUs" is advice that rests on one figure: in how many periods a program
// was throttled. What its requests wait for is another.
//
// # Rule
//
// Uber's appendix "testing quotas and cpusets" (2022): a Go program starts 32 goroutines that compute without an end; beside them a loop
// sleeps for 10 ms, and notes how long that took. It has a limit of two CPUs. They ran it under the quota, and under the quota on two CPUs.
// Here it runs on 32 CPUs, each with GOMAXPROCS=32, with GOMAXPROCS=2, and with what Go chooses by itself (since 1.25 it reads the limit);
// also on two CPUs without the quota, and without both. The other experiment is in slices.go.
//
// # Worked example
//
// 32 threads spend 200 ms of quota in 6 ms, and are stopped for 94. Two threads never spend it, but 33 goroutines take turns on them, in
// slices of 10 ms: the loop waits for its turn.
//
// # Limits
//
// The guest's CPUs are emulated: caches and memory have no effect. Their work is given as time, so that only the scheduler counts.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bench/inguest"
	"github.com/unthrottle/unthrottle/test/study"
)

// The first argument of this program in the guest, for each experiment, and of the burners that it starts there.
const (
	insideCommand  = "inside"
	slicesCommand  = "slices"
	burnersCommand = "burners"
)

// programPath is this program in the guest.
const programPath = "/published/published"

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == insideCommand:
		study.Main("published", func(context.Context) error { return inside(os.Args[2]) })
	case len(os.Args) == 3 && os.Args[1] == slicesCommand:
		study.Main("published", func(ctx context.Context) error { return slicesInside(ctx, os.Args[2]) })
	case len(os.Args) == 3 && os.Args[1] == burnersCommand:
		study.Main("published", func(context.Context) error { return burners(os.Args[2]) })
	default:
		study.Main("published", run)
	}
}

// hostCPUs is how many the guest has, guestK how many times slower than its host's its clock runs, and guestKernel its kernel.
const (
	hostCPUs    = 32
	guestK      = 40
	guestKernel = "6.18"
)

// options of all experiments.
type options struct {
	lab, exe, built string
	rounds          int
	each            time.Duration
}

func run(ctx context.Context) error {
	file := flag.String("records", "bench/published/records.jsonl.gz", "`FILE` with a line for each run of the burners")
	slicesFile := flag.String("slices-records", "bench/published/slices.jsonl.gz", "`FILE` with a line for each run on kernels that lose slices")
	pageFile := flag.String("page", "docs/results/published.md", "`FILE` to write")
	only := flag.String("only", "", "`EXPERIMENT` to run, burners or slices; none: both")
	var o options
	flag.StringVar(&o.lab, "lab", "bin/lab", "the lab `PROGRAM`")
	flag.StringVar(&o.exe, "exe", "bin/unthrottle", "the unthrottle `PROGRAM`, whose children services are in the guest")
	cache, _ := os.UserCacheDir() // without it the flag says where they are
	flag.StringVar(&o.built, "kernels", filepath.Join(cache, "unthrottle/lab/kernel-src"), "`FOLDER` of the kernels of make lab-kernel-affected")
	flag.IntVar(&o.rounds, "rounds", 1, "how often each variant runs; what is there already does not run again; 0: only write the page")
	flag.DurationVar(&o.each, "for", 6*time.Second, "how long each runs, by the guest's clock; the published burners ran for 15 s")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	have, err := study.ReadLines[piece](*file)
	if err != nil {
		return err
	}
	expiring, err := study.ReadLines[slicesPiece](*slicesFile)
	if err != nil {
		return err
	}
	switch *only {
	case "":
		if err = measureBurners(ctx, o, have); err == nil {
			err = measureSlices(ctx, o, expiring)
		}
	case "burners":
		err = measureBurners(ctx, o, have)
	case "slices":
		err = measureSlices(ctx, o, expiring)
	default:
		return fmt.Errorf("-only %.40q: give burners or slices", *only)
	}
	if len(have.All)+len(expiring.All) == 0 {
		fmt.Fprintln(os.Stderr, "published: nothing is measured yet: no page")
		return err
	}
	return errors.Join(err, study.WritePage(*pageFile, page(have.All, expiring.All)))
}

// measureBurners runs the variants that no record has, each in a guest of its own.
func measureBurners(ctx context.Context, o options, have *study.Lines[piece]) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	in := inguest.Guest{Lab: o.lab, CPUs: hostCPUs, Kernel: guestKernel, K: guestK, Files: map[string]string{programPath: program}}
	var missing []piece
	for round, at := range study.Turns(o.rounds, len(variants)) {
		p := piece{Variant: variants[at], Round: round, Seconds: o.each.Seconds(), HostCPUs: hostCPUs, K: guestK}
		if !slices.ContainsFunc(have.All, p.same) {
			missing = append(missing, p)
		}
	}
	const boot = 3 * time.Second // by the guest's clock
	if len(missing) > 0 {
		all := time.Duration(len(missing)) * guestK * (o.each + boot)
		fmt.Fprintf(os.Stderr, "published: burners: about %v\n", all.Round(time.Minute))
	}
	for _, p := range missing {
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		last, err := in.Run(ctx, time.Minute+3*o.each, programPath, insideCommand, string(text))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(last, &p); err != nil {
			return fmt.Errorf("the guest ended with %.200q: %w", last, err)
		}
		if p.Sleeps == 0 || p.P99 == nil {
			return errors.New("the guest's burners noted no sleep")
		}
		fmt.Fprintf(os.Stderr, "%s  %s, round %d: %d of %d periods throttled, p99 of a sleep %.1f ms\n", time.Now().Format(time.TimeOnly),
			p.Variant, p.Round, p.Throttled, p.Periods, *p.P99)
		if err := have.Add(p); err != nil {
			return err
		}
	}
	return nil
}
