// Command otel runs 'unthrottle spans' on the spans of a real service: make e2e-spans.
//
// # Problem
//
// A test with spans that we wrote ourselves proves that we read what we wrote. What OpenTelemetry's SDK sends, what its collector writes to
// a file, and whether a stop lies in the span that it delayed, only they tell.
//
// # Rule
//
// A service with OpenTelemetry's SDK runs in a cgroup of its own with a limit. Each request burns CPU time on a thread of its own and makes
// two spans, one in the other. They go by OTLP over HTTP to this program, which writes them by the collector's own code
// (pdata), in the form of its
// file exporter. A client sends requests one after the other. Meanwhile 'unthrottle explain --record' records. Each
// span has the CPU time of
// its thread: what it lasted beyond that it did not run. A stop that is told of a span must have room in that, and of all such time above
// 5 ms most must be told.
//
// # Limits
//
// What a span did not run it may also have waited for a CPU behind others: where explain sees more than a hundredth of that, the second
// comparison is left out, aloud.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	exe := flag.String("exe", "bin/unthrottle", "the program to run")
	serve := flag.Bool("serve", false, "be the service; it writes its address to standard output")
	flag.Parse()
	if *serve {
		fmt.Fprintln(os.Stderr, "otel:", service(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := &suite{exe: *exe}
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "otel:", err)
		os.Exit(2)
	}
	if s.failed > 0 {
		os.Exit(1)
	}
}

// suite counts what held.
type suite struct {
	exe            string
	passed, failed int
}

// check writes the line of a check.
func (s *suite) check(name string, err error) error {
	if err == nil {
		s.passed++
		fmt.Println("ok   ", name)
		return nil
	}
	s.failed++
	fmt.Printf("FAIL  %s: %v\n", name, err)
	return err
}

// run measures and compares.
func (s *suite) run(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("cgroups and recordings need root: sudo make e2e-spans")
	}
	dir, err := os.MkdirTemp("", "otel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	of, err := s.measure(ctx, dir)
	if s.check("a service with OpenTelemetry's SDK under a limit, its spans received, its container recorded", err) == nil {
		s.compare(of)
	}
	fmt.Printf("%d passed, %d failed\n", s.passed, s.failed)
	return nil
}
