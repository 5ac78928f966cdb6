// Command many runs many bursty services on one host, all with the same limit in the same period, and writes its part of
// docs/results/period.md: what `make results-many` runs.
//
// # Problem
//
// A longer period lets a container spend more at once. Where many containers have one, their bursts may meet, and each is then slower by
// what the others spend. Does a host with many of them need a bound on the sum?
//
// # Rule
//
// Twenty services share two CPUs. A service gets groups of six requests, three a second, each of 2 to 4 ms of CPU time: 0.054 CPUs
// of a limit of 0.09. Its groups come at random, or together: those of all services within a tenth of a second. The same scenario
// runs for real (package realrun) and simulated, under each setting of the limit in turns, and its p99 over the requests of each
// service is kept.
//
// # Worked example
//
// A group needs 18 ms and the quota is 9 ms in 100 ms: its last request ends in the second period. In 300 ms the quota is 27 ms.
//
// # Limits
//
// The services are our own: they compute, and touch neither a lock nor a disk that others use. A run of 20 s has 60 groups a service, so
// that its p99 is told by three or four requests; the median and the worst over services are told by all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

func main() { study.Main("many", run) }

// setting is a limit of each service; period 0: none.
type setting struct {
	name   string
	period time.Duration
	burst  bool
}

var settings = []setting{
	{"100 ms", 100 * time.Millisecond, false}, {"burst, 100 ms", 100 * time.Millisecond, true},
	{"burst, 300 ms", 300 * time.Millisecond, true}, {"1 s", time.Second, false}, {"burst, 1 s", time.Second, true}, {"no limit", 0, false},
}

const (
	services  = 20
	limitCPUs = 0.09
	group     = 6
	perSecond = 3
	// apart is how far apart the services' groups are where they come together: all at one moment are more than their clients can send.
	apart = 5 * time.Millisecond
	// lateAfter lets load generators be as late as they are: twenty of them share the two CPUs with the services, and to say nothing
	// of those that were late would leave out those that met most others. What they add is in each latency, under every setting alike.
	lateAfter = 10 * time.Second
)

// piece is what one run showed.
type piece struct {
	study.Made
	Setting string `json:"setting"`
	// Together: all services' groups come within a tenth of a second.
	Together bool `json:"together"`
	// Real: it ran; else it was simulated.
	Real    bool    `json:"real"`
	Round   int     `json:"round"`
	Seconds float64 `json:"seconds"`
	// P50 and P99 are those of each service, in ms; CPUs is what all used.
	P50  []float64 `json:"p50_ms"`
	P99  []float64 `json:"p99_ms"`
	CPUs float64   `json:"cpus"`
}

func run(ctx context.Context) error {
	exe := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM`, which the services and their clients are children of")
	file := flag.String("records", "bench/many/records.jsonl.gz", "`FILE` with a line for each run")
	pageFile := flag.String("page", "docs/results/period.md", "`FILE` whose part to write")
	rounds := flag.Int("rounds", 3, "how often each setting runs for real; 0: only write the page")
	each := flag.Duration("for", 20*time.Second, "how long each run is measured")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	have, err := study.ReadLines[piece](*file)
	if err != nil {
		return err
	}
	if *rounds > 0 {
		have.All = nil
		if err := measure(ctx, have, *exe, *rounds, *each); err != nil {
			return err
		}
		if err := have.Write(); err != nil {
			return err
		}
	}
	return write(*pageFile, have.All)
}

func measure(ctx context.Context, have *study.Lines[piece], exe string, rounds int, each time.Duration) error {
	host, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	for _, together := range []bool{false, true} {
		for round, at := range study.Turns(rounds, len(settings)) {
			set := settings[at]
			s, err := set.scenario(together, each)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "many: round %d, %s, together %v\n", round, set.name, together)
			if round == 1 {
				simulated, err := simulate.Run(s, simulate.Options{Seed: 1})
				if err != nil {
					return err
				}
				have.All = append(have.All, pieceOf(simulated.Outcome, piece{Setting: set.name, Together: together, Round: 1}))
			}
			real, err := realrun.Run(ctx, s, realrun.Options{Host: host, Seed: uint64(round), LateAfter: lateAfter, Exe: exe})
			if err != nil {
				return err
			}
			have.All = append(have.All, pieceOf(real.Outcome, piece{Setting: set.name, Together: together, Real: true, Round: round}))
		}
	}
	return nil
}

// pieceOf fills in what came of a run.
func pieceOf(o scenario.Outcome, p piece) piece {
	p.Made, p.Seconds = study.Now(time.Now()), o.Seconds
	for _, name := range names() {
		if w := o.Workloads[name]; w.P50 != nil && w.P99 != nil {
			p.P50, p.P99 = append(p.P50, *w.P50), append(p.P99, *w.P99)
		}
		p.CPUs += o.Cgroups[name].UsageSeconds / o.Seconds
	}
	return p
}

func names() (all []string) {
	for i := range services {
		all = append(all, fmt.Sprintf("s%02d", i))
	}
	return all
}

// scenario is the host with its services under a setting.
func (set setting) scenario(together bool, length time.Duration) (scenario.Scenario, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nabout: many bursty services on one host\nduration: %v\nhost: {cpus: 2, kernel: \"6.18\"}\ncgroups:\n", length)
	for _, name := range names() {
		fmt.Fprintf(&b, "  %s: {quota: %v, period: 100ms}\n", name, bandwidth.QuotaOf(limitCPUs, bandwidth.DefaultPeriod))
	}
	b.WriteString("workloads:\n")
	for i, name := range names() {
		arrivals := fmt.Sprintf("{per_second: %d, burst: %d}", perSecond*group, group)
		if together {
			arrivals = "{at: [" + strings.Join(moments(time.Duration(i)*apart, length), ", ") + "]}"
		}
		fmt.Fprintf(&b, "  %s:\n    kind: service\n    cgroup: %s\n    pools:\n      all: {threads: 4}\n    classes:\n"+
			"      get: {pool: all, work: {uniform: [2ms, 4ms]}, arrivals: %s}\n", name, name, arrivals)
	}
	s, err := scenario.Parse("many", []byte(b.String()))
	if err != nil {
		return s, err
	}
	for i := range s.Cgroups {
		limit := &s.Cgroups[i].Limit
		switch {
		case set.period == 0:
			limit.Quota = bandwidth.NoQuota
		case limit.Limited():
			*limit = limit.In(set.period)
			if set.burst {
				limit.Burst = limit.Quota
			}
		}
	}
	return s, nil
}

// moments are when a group comes to a service, at equal gaps from a first moment on.
func moments(first, length time.Duration) (all []string) {
	for at := first; at < length; at += time.Second / perSecond {
		all = append(all, slices.Repeat([]string{at.Truncate(time.Millisecond).String()}, group)...)
	}
	return all
}

func write(name string, all []piece) error {
	if len(all) == 0 {
		return errors.New("nothing was measured yet: give -rounds above 0")
	}
	return study.WriteBetween(name, "many", page(all))
}
