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
// service is kept. On 16 CPUs, those of a guest of the lab in slow time, each service has eight times the limit and requests of eight
// times the CPU time, so that the host is as full.
//
// # Worked example
//
// On two CPUs a group needs 18 ms and the quota is 9 ms in 100 ms: its last request ends in the second period. In 300 ms the quota
// is 27 ms.
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
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/test/study"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == insideCommand {
		study.Main("many", func(ctx context.Context) error { return inside(ctx, os.Args[2]) })
		return
	}
	study.Main("many", run)
}

// setting is a limit of each service; period 0: none. inGuest ones are measured in the guest too, where a run takes minutes.
type setting struct {
	name    string
	period  time.Duration
	burst   bool
	inGuest bool
}

var settings = []setting{
	{"100 ms", 100 * time.Millisecond, false, true}, {"burst, 100 ms", 100 * time.Millisecond, true, false},
	{"burst, 300 ms", 300 * time.Millisecond, true, true}, {"1 s", time.Second, false, true},
	{"burst, 1 s", time.Second, true, true}, {"no limit", 0, false, true},
}

// machine is a host that the services share.
type machine struct {
	cpus int
	// times is how many times the limit and the CPU time of a request are those on two CPUs.
	times int
	// hz and kernel are for the simulator, kernel for the lab too.
	hz     int
	kernel string
}

var (
	narrowHost = machine{cpus: 2, times: 1, kernel: "6.18"}
	// wide is a guest of the lab. CONFIG_HZ of Debian's kernels is 250.
	wide = machine{cpus: 16, times: 8, hz: 250, kernel: "6.18"}
)

// limit is that of each service, in CPUs.
func (m machine) limit() float64 { return limitCPUs * float64(m.times) }

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
	Real bool `json:"real"`
	// HostCPUs is that of the guest of the lab where it ran, and K how many times slower than its host's the guest's clock was; 0: it ran
	// on this host, or is a simulation of it.
	HostCPUs int     `json:"host_cpus,omitempty"`
	K        int     `json:"k,omitempty"`
	Round    int     `json:"round"`
	Seconds  float64 `json:"seconds"`
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
	k := flag.Int("k", 0, "run in a guest of the lab with 16 CPUs whose clock is `K` times slower, and measure what is missing there; "+
		"0: on this host")
	lab := flag.String("lab", "bin/lab", "the lab `PROGRAM`, for -k")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	have, err := study.ReadLines[piece](*file)
	if err != nil {
		return err
	}
	switch {
	case *rounds > 0 && *k > 0:
		g := guest{lab: *lab, exe: *exe, k: *k}
		if err := simulateMissing(have, *k, *each); err != nil {
			return err
		}
		if err := g.measure(ctx, missing(have.All, *rounds, each.Seconds(), *k), have.Add); err != nil {
			return err
		}
	case *rounds > 0:
		have.All = slices.DeleteFunc(have.All, func(p piece) bool { return p.HostCPUs == 0 })
		if err := measure(ctx, have, *exe, *rounds, *each); err != nil {
			return err
		}
		if err := have.Write(); err != nil {
			return err
		}
	}
	return write(*pageFile, have.All)
}

// simulateMissing simulates what the guest measures.
func simulateMissing(have *study.Lines[piece], k int, each time.Duration) error {
	for _, p := range missing(nil, 1, each.Seconds(), k) {
		if p.Real, p.K = false, 0; slices.ContainsFunc(have.All, p.same) {
			continue
		}
		i := slices.IndexFunc(settings, func(s setting) bool { return s.name == p.Setting })
		s, err := settings[i].scenario(wide, p.Together, each)
		if err != nil {
			return err
		}
		if p, err = simulated(s, p); err != nil {
			return err
		}
		if err := have.Add(p); err != nil {
			return err
		}
	}
	return nil
}

// simulated fills in what comes of a scenario in the simulator.
func simulated(s scenario.Scenario, p piece) (piece, error) {
	result, err := simulate.Run(s, simulate.Options{Seed: 1})
	return pieceOf(result.Outcome, p), err
}

func measure(ctx context.Context, have *study.Lines[piece], exe string, rounds int, each time.Duration) error {
	host, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	for _, together := range []bool{false, true} {
		for round, at := range study.Turns(rounds, len(settings)) {
			set := settings[at]
			s, err := set.scenario(narrowHost, together, each)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "many: round %d, %s, together %v\n", round, set.name, together)
			if round == 1 {
				p, err := simulated(s, piece{Setting: set.name, Together: together, Round: 1})
				if err != nil {
					return err
				}
				have.All = append(have.All, p)
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
func (set setting) scenario(m machine, together bool, length time.Duration) (scenario.Scenario, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nabout: many bursty services on one host\nduration: %v\nhost: {cpus: %d, kernel: %q", length, m.cpus, m.kernel)
	if m.hz > 0 {
		fmt.Fprintf(&b, ", hz: %d", m.hz)
	}
	b.WriteString("}\ncgroups:\n")
	for _, name := range names() {
		fmt.Fprintf(&b, "  %s: {quota: %v, period: 100ms}\n", name, bandwidth.QuotaOf(m.limit(), bandwidth.DefaultPeriod))
	}
	b.WriteString("workloads:\n")
	for i, name := range names() {
		arrivals := fmt.Sprintf("{per_second: %d, burst: %d}", perSecond*group, group)
		if together {
			arrivals = "{at: [" + strings.Join(moments(time.Duration(i)*apart, length), ", ") + "]}"
		}
		fmt.Fprintf(&b, "  %s:\n    kind: service\n    cgroup: %s\n    pools:\n      all: {threads: 4}\n    classes:\n"+
			"      get: {pool: all, work: {uniform: [%dms, %dms]}, arrivals: %s}\n", name, name, 2*m.times, 4*m.times, arrivals)
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
