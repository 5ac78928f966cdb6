// Command secondary measures what batch work gets of the CPUs that a service leaves idle, and what the service pays for it, and writes
// docs/results/secondary.md: what `make results-secondary` runs.
//
// # Problem
//
// Work that nobody waits for could use what services leave idle. A quota wastes most of that, and equal weights let the service wait for
// the batch. Remedies for it (secondary, pin --lends, pin --realtime) promise both, and nothing said what each costs.
//
// # Rule
//
// A service of package services, without a limit, runs beside a container that compresses with zstd on as many threads as the host has
// CPUs, without a pause. Both are siblings. Each variant is in force for a step of the client's usual load, in a random order in each
// round; the batch's quota of 1 ms a second, so that it does nearly nothing, is what the others are compared with.
//
// # Worked example
//
// p99 is 4 ms beside a batch that hardly runs, and 5 ms beside a secondary that gets 1.6 of the host's 2 CPUs: 1.25 times, for 1.6 CPUs.
//
// # Limits
//
// Two CPUs, of which the client uses a part with real-time priority. Caches and memory are shared in all variants.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var pageText string

// served are the services of the page.
var served = []string{"postgres-tpcb", "redis-gets", "etcd-ranges"}

// The container of the batch, and its program.
const (
	batch      = "batch"
	batchInput = `head -c 24000000 /dev/urandom | base64 > text`
	batchRun   = `while :; do zstd -q -T0 -9 -c {{.Dir}}/text > /dev/null; done`
)

// warm is how long the load runs before a step is measured, and after a variant is in force.
const warm = time.Second

func main() { services.Main("secondary", run) }

func run(ctx context.Context) error {
	exe := flag.String("exe", "bin/unthrottle", "the unthrottle `PROGRAM` to try")
	names := flag.String("services", strings.Join(served, ","), "`NAMES` of services to measure")
	rounds := flag.Int("rounds", 3, "how often each variant is measured; what is there already is not measured again; 0: only write the page")
	each := flag.Duration("each", 8*time.Second, "how long each step is measured")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q: it takes no arguments", flag.Arg(0))
	}
	have, err := study.ReadLines[piece]("bench/secondary/records.jsonl.gz")
	if err != nil {
		return err
	}
	if *rounds > 0 {
		o := options{each: *each}
		if o.exe, err = filepath.Abs(*exe); err != nil {
			return err
		}
		if o.host, err = cgroup.Open("/proc"); err != nil {
			return err
		}
		var chosen []services.Case
		for name := range strings.SplitSeq(*names, ",") {
			c, ok := services.Find(name)
			if !ok {
				return fmt.Errorf("-services %.60q: bench/services has none of that name", name)
			}
			chosen = append(chosen, withBatch(c))
		}
		err = services.MissingRounds(ctx, have, chosen, *rounds, func(c services.Case, round int) (piece, error) {
			return o.round(ctx, c, round)
		})
	}
	return errors.Join(err, study.WritePage("docs/results/secondary.md", page(have.All)))
}

type options struct {
	host *cgroup.Host
	exe  string
	each time.Duration
}

// piece is one round of one service.
type piece struct {
	study.Made
	Service string  `json:"service"`
	Round   int     `json:"round"`
	CPUs    int     `json:"cpus"` // that both share
	Points  []point `json:"points"`
}

// point is one variant. Latencies are in ms.
type point struct {
	Variant  string   `json:"variant"`
	Refused  string   `json:"refused,omitempty"`
	P50      *float64 `json:"p50_ms"`
	P99      *float64 `json:"p99_ms"`
	Requests uint64   `json:"requests"`
	Errors   uint64   `json:"errors"`
	UsedCPUs float64  `json:"used_cpus"`
	Batch    float64  `json:"batch_cpus"`
}

// variant is one way to hold both.
type variant struct {
	name string
	// quota is the batch's.
	quota bandwidth.Limit
	// service and batch are the arguments of apply for each; none: nothing is applied.
	service, batch []string
}

func quotaOf(cpus float64) bandwidth.Limit {
	return bandwidth.Limit{Quota: bandwidth.QuotaOf(cpus, services.Period), Period: services.Period}
}

// variants are what is compared. What the batch hardly runs under comes first.
var variants = []variant{
	{name: "the batch hardly runs", quota: bandwidth.Limit{Quota: bandwidth.MinQuota, Period: bandwidth.MaxPeriod}},
	{name: "equal weights", quota: bandwidth.Unlimited()},
	{name: "equal weights, a quota of 0.5 CPUs for the batch", quota: quotaOf(0.5)},
	{name: "equal weights, a quota of 1 CPU for the batch", quota: quotaOf(1)},
	{name: "the batch as secondary", quota: bandwidth.Unlimited(), batch: []string{"--remedy", "secondary"}},
	{name: "the service on a CPU of its own that it lends, the batch as secondary", quota: bandwidth.Unlimited(),
		service: []string{"--remedy", "pin", "--cpus", "1", "--lends"}, batch: []string{"--remedy", "secondary"}},
	{name: "the service on a CPU of its own", quota: bandwidth.Unlimited(), service: []string{"--remedy", "pin", "--cpus", "1"}},
	{name: "the service on a CPU of its own, in real time", quota: bandwidth.Unlimited(),
		service: []string{"--remedy", "pin", "--cpus", "1", "--realtime"}},
}

// Is tells whether it is that round of that service.
func (p piece) Is(service string, round int) bool { return p.Service == service && p.Round == round }

// withBatch is a service with the batch beside it.
func withBatch(c services.Case) services.Case {
	c.Needs = append(slices.Clone(c.Needs), "zstd zstd")
	c.Containers = maps.Clone(c.Containers)
	if c.Containers == nil {
		c.Containers = map[string]float64{}
	}
	c.Containers[batch] = 1
	c.Prepare = strings.TrimSuffix(c.Prepare, "\n") + "\n" + batchInput
	c.Programs = append(slices.Clone(c.Programs), services.Program{In: batch, Run: batchRun})
	return c
}

// round measures each variant once, on one running service.
func (o options) round(ctx context.Context, c services.Case, round int) (p piece, err error) {
	if missing := c.Missing(); missing != "" {
		return p, errors.New(missing)
	}
	s, err := services.Open(o.host, c)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	idle := s.Containers[batch]
	if err := errors.Join(s.Limited.SetLimit(bandwidth.Unlimited()), idle.SetLimit(variants[0].quota)); err != nil {
		return p, err
	}
	tool := services.NewTool(o.exe, s)
	if err := os.Mkdir(tool.State(), 0o700); err != nil {
		return p, err
	}
	of, err := s.Serve(ctx, c)
	if err != nil {
		return p, fmt.Errorf("start: %w", err)
	}
	p = piece{Made: study.Now(time.Now()), Service: c.Name, Round: round, CPUs: len(s.CPUs())}
	seed := services.Seed(c.Name) + uint64(round)
	if _, err := client(ctx, of, 3*warm, seed); err != nil {
		return p, err
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(variants))
	for _, i := range order {
		at, err := o.variant(ctx, s, of, variants[i], seed)
		if err != nil {
			return p, fmt.Errorf("%s: %w", variants[i].name, err)
		}
		p.Points = append(p.Points, at)
		fmt.Fprintf(os.Stderr, "%s  %s: round %d: %s: p50 %s, p99 %s ms; the batch %.2f CPUs %s\n", time.Now().Format(time.TimeOnly), c.Name, round,
			at.Variant, study.Decimals(at.P50, 2), study.Decimals(at.P99, 2), at.Batch, at.Refused)
	}
	return p, nil
}

// variant puts one in force, measures it, and takes it back.
func (o options) variant(ctx context.Context, s *services.Stage, of services.Service, v variant, seed uint64) (at point, err error) {
	at.Variant = v.name
	idle, tool := s.Containers[batch], services.NewTool(o.exe, s)
	all := cpuset.New(s.CPUs()...)
	// A pin is refused where others need more than it would leave, as a batch without a pause does: it is made before that begins.
	if err := errors.Join(idle.SetLimit(variants[0].quota), idle.SetCPUs(all), s.Limited.SetCPUs(all)); err != nil {
		return at, err
	}
	defer func() { err = errors.Join(err, tool.Restore(context.WithoutCancel(ctx))) }()
	own := tool
	own.Target = idle.At().Path
	for _, each := range []struct {
		tool services.Tool
		args []string
	}{{tool, v.service}, {own, v.batch}} {
		if at.Refused, err = each.tool.Apply(ctx, each.args); err != nil || at.Refused != "" {
			return at, err
		}
	}
	if err := idle.SetLimit(v.quota); err != nil {
		return at, err
	}
	if _, err := client(ctx, of, warm, seed); err != nil {
		return at, err
	}
	before, err := used(s.Limited, idle)
	if err != nil {
		return at, err
	}
	began := time.Now()
	result, err := client(ctx, of, o.each, seed)
	if err != nil {
		return at, err
	}
	seconds := time.Since(began).Seconds()
	after, err := used(s.Limited, idle)
	if err != nil {
		return at, err
	}
	at.UsedCPUs, at.Batch = (after[0]-before[0]).Seconds()/seconds, (after[1]-before[1]).Seconds()/seconds
	judged := result.Phases[0].Streams[0]
	at.Requests, at.Errors = judged.Intended, judged.Errors()
	at.P50, at.P99 = services.Milliseconds(judged.Latency, 0.5), services.Milliseconds(judged.Latency, 0.99)
	return at, nil
}

func client(ctx context.Context, of services.Service, d time.Duration, seed uint64) (loadgen.Result, error) {
	return services.RunClient(ctx, services.Order{Requests: of.Requests, Plan: loadgen.Plan{Seed: seed, Streams: of.Streams,
		Connections: of.Connections, Phases: []loadgen.Phase{{For: d, Factor: 1, Measured: true}}}})
}

// used is the CPU time that each has used.
func used(groups ...*sandbox.Group) (all []time.Duration, err error) {
	for _, g := range groups {
		stat, err := g.Stat()
		if err != nil {
			return nil, err
		}
		if stat.Usage == nil {
			return nil, errors.New("the kernel does not measure the container's CPU use: mount the cpuacct controller")
		}
		all = append(all, *stat.Usage)
	}
	return all, nil
}
