// Command threads measures what libs/go does for a real net/http service under a CPU limit, and libs/java for those of
// Netty and Finagle, and writes docs/results/threads.md.
//
// # Rule
//
// A service and its client are children in cgroups of the sandbox; the service's has the quota. The client sends pings and work
// at times that do not depend on the answers, and counts latencies from the intended time. The counters of the service's cgroup
// are the kernel's. Rounds have all variants in turn. What was measured is kept line by line; a later run goes on from there.
//
// # Limits
//
// Service and client share the host's CPUs, at the highest weight. What else runs on the host makes latencies longer for all
// variants alike.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/test/study"
)

func main() {
	if done, err := asChild(os.Args[1:]); done {
		exit(err)
	}
	records := flag.String("records", "bench/threads/records.jsonl.gz", "where pieces are kept")
	out := flag.String("out", "docs/results/threads.md", "the page")
	ofForecast := flag.String("error", "internal/sim/forecast/budget.json", "the error of a forecast's row of the library")
	rounds := flag.Int("rounds", 3, "how many rounds there are in all; 0: only the page is written")
	length := flag.Duration("each", 10*time.Second, "how long bursts are measured")
	flag.Parse()
	exit(run(*records, *out, *ofForecast, *rounds, *length))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "threads:", err)
		os.Exit(2)
	}
	os.Exit(0)
}

// asChild is the life of a child, if the arguments are one's.
func asChild(args []string) (bool, error) {
	switch {
	case len(args) == 2 && args[0] == "-service":
		return true, serve(variant(args[1]), false)
	case len(args) == 2 && args[0] == "-spiral":
		return true, serve(variant(args[1]), true)
	case len(args) == 1 && args[0] == "-client":
		return true, load()
	}
	return false, nil
}

// missing says why the JVM's service cannot be started; nil: it can.
func (b *bench) missing() error {
	_, err := os.Stat(b.jar)
	if err == nil {
		_, err = exec.LookPath("java")
	}
	if err != nil {
		return fmt.Errorf("the variants of Netty and Finagle: NOT DONE: %w: apt-get install openjdk-17-jdk-headless "+
			"maven, then mvn -f libs/java/pom.xml verify", err)
	}
	return nil
}

// step is bursts or a spiral to be measured. Of its variants the last one is the library as it is used; controls are those
// without it that it is held against.
type step struct {
	part     string
	limit    float64
	works    int
	variants []variant
	controls []variant
}

// library is the variant whose aims are judged.
func (s step) library() variant { return s.variants[len(s.variants)-1] }

var plan = []step{
	{partBursts, 0.7, 6, ofGo, ofGo[:1]},
	{partBursts, 1.5, 12, ofGo, ofGo[:1]},
	{partNetty, 0.7, 6, nettyVariants, nettyVariants[:2]},
	{partNetty, 1.5, 12, nettyVariants, nettyVariants[:2]},
	{partOverload, 0.7, 10, []variant{plain, paced}, []variant{plain}},
	{partOverload, 1.5, 20, []variant{plain, paced}, []variant{plain}},
	{partSpiral, 0.5, 0, []variant{plain, paced, shedAt}, []variant{plain}},
}

func open(exe string) (*bench, error) {
	host, err := cgroup.Open("/proc")
	if err != nil {
		return nil, err
	}
	box, err := sandbox.Open(sandbox.Options{Host: host, Prefix: "unthrottle-threads-"})
	if err != nil {
		return nil, err
	}
	perSecond := roundsPer(time.Second)
	return &bench{box: box, exe: exe, jar: "libs/java/bench/target/unthrottle-bench.jar",
		rounds: func(d time.Duration) int { return int(float64(perSecond) * d.Seconds()) }}, nil
}

func run(records, out, ofForecast string, rounds int, length time.Duration) (err error) {
	lines, err := study.ReadLines[piece](records)
	if err != nil {
		return err
	}
	if rounds > 0 {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		b, err := open(exe)
		if err != nil {
			return err
		}
		if err := errors.Join(measure(b, lines, rounds, length), b.box.Remove()); err != nil {
			return err
		}
	}
	text, err := budgetJSON(lines.All)
	if err != nil {
		return err
	}
	if err := os.WriteFile(ofForecast, text, 0o644); err != nil {
		return err
	}
	published, err := page(lines.All)
	if err != nil {
		return err
	}
	return study.WritePage(out, published)
}

// measure measures the pieces that are missing.
func measure(b *bench, lines *study.Lines[piece], rounds int, length time.Duration) error {
	missing := b.missing()
	if missing != nil {
		fmt.Fprintln(os.Stderr, missing)
	}
	for round := range rounds {
		if missing == nil {
			if err := b.finagle(lines, round+1, length); err != nil {
				return err
			}
		}
		for _, s := range plan {
			if s.part == partNetty && missing != nil {
				continue
			}
			for i := range s.variants {
				v := s.variants[(i+round)%len(s.variants)]
				if has(lines.All, s, v, round+1) {
					continue
				}
				var p piece
				var err error
				if s.part == partSpiral {
					p, err = b.spiral(v, uint64(round))
				} else {
					p, err = b.bursts(v, s.limit, s.works, length)
				}
				if err != nil {
					return err
				}
				p.Part = s.part
				p.Made, p.Round = study.Now(time.Now()), round+1
				if err := lines.Add(p); err != nil {
					return err
				}
				fmt.Printf("%s under %g CPUs, %s, round %d: %d of %d periods throttled, ping p99 %.1f ms, %d of %d works\n",
					s.part, s.limit, v, round+1, p.Throttled, p.Periods, p.PingP99MS, p.WorksDone, p.Works)
			}
		}
	}
	return nil
}

func has(pieces []piece, s step, v variant, round int) bool {
	for _, p := range pieces {
		if p.Part == s.part && p.Limit == s.limit && p.Variant == v && p.Round == round {
			return true
		}
	}
	return false
}
