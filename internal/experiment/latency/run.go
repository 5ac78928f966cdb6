package latency

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
)

// Bounds and defaults of Options.
const (
	DefaultSeconds, MinSeconds, MaxSeconds = 4., 1., 600.
	DefaultRepeat, MaxRepeat               = 5, 100
)

// Options of Compare. Host must be given.
type Options struct {
	Host    *cgroup.Host
	CPUs    int     // that can be used
	Seconds float64 // of each run
	Repeat  int     // rounds
	Scope   string
	Fair    bool
	Exe     string // what children run; "": this program
	// Progress, if set, is called before each run.
	Progress func(doing string)
}

// Result is the contract of `unthrottle bench latency --json`.
type Result struct {
	Kernel   string   `json:"kernel"` // uname -r
	Mode     string   `json:"cgroup_mode"`
	CPUs     int      `json:"cpus"`
	Limit    int      `json:"limit_cpus"`
	Burners  int      `json:"burners"`
	SleepMs  float64  `json:"sleep_ms"`
	Seconds  float64  `json:"seconds"` // of each run
	Repeat   int      `json:"repeat"`
	Remedies []Row    `json:"remedies"`
	Notes    []string `json:"notes"`
}

// Row is one remedy: medians over the rounds.
type Row struct {
	Remedy  string   `json:"remedy"`
	Granted float64  `json:"cpus_granted"`
	Used    float64  `json:"cpus_used"`
	Count   uint64   `json:"count"`
	P50     *float64 `json:"p50_ms"`
	P90     *float64 `json:"p90_ms"`
	P99     *float64 `json:"p99_ms"` // nil with fewer than 10 samples beyond it
	Max     *float64 `json:"max_ms"`
	// Ratio of the p90 to the plain quota's of the same round; nil for that itself,
	// and where more CPUs are granted.
	Ratio     *float64 `json:"ratio"`
	RatioLow  *float64 `json:"ratio_low"`  // of all rounds
	RatioHigh *float64 `json:"ratio_high"` // of all rounds
	// Periods and ThrottledPeriods; nil without a quota.
	Periods          *uint64 `json:"periods"`
	ThrottledPeriods *uint64 `json:"throttled_periods"`
	// Noisy: the p90 of the rounds lie further apart than a factor of two.
	Noisy bool `json:"noisy"`
}

// Compare runs all remedies. Errors of type [*experiment.NotMeasurable] say that
// this host cannot run it.
func Compare(ctx context.Context, o Options) (Result, error) {
	var uts unix.Utsname
	_ = unix.Uname(&uts) // fails for a bad pointer only
	limit := limitCPUs(o.CPUs)
	r := Result{
		Kernel: unix.ByteSliceToString(uts.Release[:]), Mode: o.Host.Mode(), CPUs: o.CPUs, Limit: limit, Burners: burnersPerCPU * limit,
		SleepMs: float64(sleepLength) / 1e6, Seconds: o.Seconds, Repeat: o.Repeat, Notes: []string{},
	}
	if o.CPUs <= limit {
		return r, &realrun.NotMeasurable{
			What:   fmt.Sprintf("%d CPU(s) can be used: a limit of %d would never bind", o.CPUs, limit),
			WayOut: "run it on a host with more CPUs, or leave --parent out"}
	}
	names := remedies()
	runs := map[string][]scenario.Outcome{}
	for n := range o.Repeat {
		for i := range names {
			name := names[(i+n)%len(names)]
			if o.Progress != nil {
				o.Progress(fmt.Sprintf("round %d of %d: %s", n+1, o.Repeat, name))
			}
			s, err := scenarioOf(name, o.CPUs, time.Duration(o.Seconds*float64(time.Second)))
			if err != nil {
				return r, err
			}
			got, err := realrun.Run(ctx, s, realrun.Options{Host: o.Host, Scope: o.Scope, Fair: o.Fair, Seed: uint64(n) + 1, Exe: o.Exe})
			if err != nil {
				return r, fmt.Errorf("remedy %s: %w", name, err)
			}
			runs[name] = append(runs[name], got.Outcome)
			r.Notes = append(r.Notes, got.Notes...)
		}
	}
	for _, name := range names {
		r.Remedies = append(r.Remedies, row(name, o.CPUs, runs[name], runs[quota]))
	}
	return r, nil
}

// noisyFactor is how far the rounds of one remedy may lie apart.
const noisyFactor = 2

// row sums a remedy's rounds up. plain are those of the quota, in the same order.
func row(name string, cpus int, runs, plain []scenario.Outcome) Row {
	mid := scenario.Quantile(runs, 0.5)
	w, c := mid.Workloads[sleeper], mid.Cgroups[group]
	r := Row{
		Remedy: name, Granted: granted(name, cpus), Used: c.UsageSeconds / mid.Seconds, Count: w.Count,
		P50: w.P50, P90: w.P90, Max: w.Max,
	}
	if w.Count >= 1000 {
		r.P99 = w.P99
	}
	if name != weight && name != pin {
		r.Periods, r.ThrottledPeriods = &c.Periods, &c.ThrottledPeriods
	}
	var own, ratios []float64
	for i := range runs {
		a, b := runs[i].Workloads[sleeper].P90, plain[i].Workloads[sleeper].P90
		if a == nil || b == nil {
			continue
		}
		own = append(own, *a)
		ratios = append(ratios, *a / *b)
	}
	if len(own) > 0 {
		r.Noisy = slices.Max(own) > noisyFactor*slices.Min(own)
	}
	if name != quota && r.Granted == granted(quota, cpus) && len(ratios) > 0 {
		slices.Sort(ratios)
		r.Ratio, r.RatioLow, r.RatioHigh = &ratios[(len(ratios)-1)/2], &ratios[0], &ratios[len(ratios)-1]
	}
	return r
}
