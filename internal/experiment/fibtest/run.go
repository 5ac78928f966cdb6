package fibtest

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
)

// Bounds and defaults of Options.
const (
	DefaultSeconds, MinSeconds, MaxSeconds = 5., 1., 600.
	DefaultRepeat, MaxRepeat               = 3, 100
)

// Options of Test. Host must be given.
type Options struct {
	Host    *cgroup.Host
	CPUs    int     // that can be used; threads are pinned to them
	Seconds float64 // of each run
	Repeat  int     // of each run, interleaved: the median counts
	Scope   string
	Fair    bool
	Exe     string // what children run; "": this program
	// Progress, if set, is called before each run.
	Progress func(doing string)
}

// Result is the contract of `unthrottle bench fibtest --json`.
type Result struct {
	Verdict Verdict  `json:"verdict"`
	Why     string   `json:"why"`
	Kernel  string   `json:"kernel"` // uname -r
	HZ      int      `json:"hz"`     // scheduler ticks per second
	Mode    string   `json:"cgroup_mode"`
	CPUs    int      `json:"cpus"`
	Seconds float64  `json:"seconds"` // of each run
	Repeat  int      `json:"repeat"`
	Runs    []Run    `json:"runs"`
	Notes   []string `json:"notes"`
}

// Run is one combination: medians over its repeats.
type Run struct {
	Threads      int     `json:"threads"`
	Fast         int     `json:"fast"`
	Slow         int     `json:"slow"`
	QuotaSeconds float64 `json:"quota_seconds"` // per 100 ms
	// Iterations of the fast thread, of 1 multiplication and addition each.
	Iterations       uint64  `json:"iterations"`
	Periods          uint64  `json:"periods"`
	ThrottledPeriods uint64  `json:"throttled_periods"`
	UsageSeconds     float64 `json:"usage_seconds"`
	// Share of the quota that was used, with its lowest and highest.
	Share    float64 `json:"share"`
	Lowest   float64 `json:"lowest_share"`
	Highest  float64 `json:"highest_share"`
	Affected Range   `json:"expected_if_affected"` // simulated
	Fixed    Range   `json:"expected_if_fixed"`
}

// Test runs all combinations and judges. Errors of type
// [*experiment.NotMeasurable] say that this host cannot run it.
func Test(ctx context.Context, o Options) (Result, error) {
	var uts unix.Utsname
	_ = unix.Uname(&uts) // fails for a bad pointer only
	r := Result{Kernel: unix.ByteSliceToString(uts.Release[:]), HZ: tickRate(), Mode: o.Host.Mode(), CPUs: o.CPUs,
		Seconds: o.Seconds, Repeat: o.Repeat, Notes: []string{}}
	all := variants(min(o.CPUs, threads.MaxThreads))
	runs := make([][]scenario.Outcome, len(all))
	for n := range o.Repeat {
		for i, a := range all {
			if o.Progress != nil {
				o.Progress(fmt.Sprintf("round %d of %d: %d threads, %v per %v", n+1, o.Repeat, a.threads, a.quota, period))
			}
			s, err := scenarioOf(a, o.CPUs, time.Duration(o.Seconds*float64(time.Second)), fixedKernel, scenario.DefaultHZ)
			if err != nil {
				return r, err
			}
			got, err := realrun.Run(ctx, s, realrun.Options{Host: o.Host, Scope: o.Scope, Fair: o.Fair, Seed: uint64(n) + 1, Exe: o.Exe})
			if err != nil {
				return r, err
			}
			runs[i] = append(runs[i], got.Outcome)
			r.Notes = append(r.Notes, got.Notes...)
		}
	}
	for i, a := range all {
		run, err := summed(a, o.CPUs, r.HZ, runs[i])
		if err != nil {
			return r, err
		}
		r.Runs = append(r.Runs, run)
	}
	r.Verdict, r.Why = judge(r.Runs)
	return r, nil
}

// summed is one combination's row.
func summed(a variant, cpus, hz int, runs []scenario.Outcome) (r Run, err error) {
	mid := scenario.Quantile(runs, 0.5)
	c := mid.Cgroups[cgroupName]
	r = Run{
		Threads: a.threads, Fast: 1, Slow: a.threads - 1, QuotaSeconds: a.quota.Seconds(),
		Periods: c.Periods, ThrottledPeriods: c.ThrottledPeriods, UsageSeconds: c.UsageSeconds, Share: shareOf(a, c),
	}
	r.Lowest, r.Highest = r.Share, r.Share
	for _, outcome := range runs {
		share := shareOf(a, outcome.Cgroups[cgroupName])
		r.Lowest, r.Highest = min(r.Lowest, share), max(r.Highest, share)
	}
	if n := mid.Workloads[cgroupName].Iterations; n != nil {
		r.Iterations = *n
	}
	if r.Affected, err = expected(a, cpus, affectedKernel, hz); err != nil {
		return r, err
	}
	r.Fixed, err = expected(a, cpus, fixedKernel, hz)
	return r, err
}
