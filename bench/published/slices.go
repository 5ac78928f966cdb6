package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bench/inguest"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/test/study"
)

// Indeed's "Unthrottled: fixing CPU limits in the cloud" (2019): on kernels from 4.18 to 5.3 what a CPU had left of its slice of the quota
// was lost at the end of each period. A service whose worker threads do a little on each CPU was throttled far below its limit; with the
// kernel's mend its worst response fell from over 2 s to 30 ms. Here a service answers beside such workers, on a kernel with that expiry
// put back, on the same kernel without it, and on one of today.

// slicesKernels are the kernels, by what the page calls them, with the files below the folder of kernels that were built; "": one of the
// lab's.
var slicesKernels = []struct{ name, file string }{
	{"slices expire", "vmlinux-slices-expire"}, {"slices are kept", "vmlinux-slices-kept"}, {guestKernel, ""},
}

// slicesHosts are the hosts. A CPU takes 5 ms of the quota at a time: one period's quota is less than that for each CPU, and several times
// what is used.
var slicesHosts = []slicesHost{{16, 20, 60 * time.Millisecond}, {64, 80, 250 * time.Millisecond}}

type slicesHost struct {
	cpus, k int
	quota   time.Duration // of 100 ms
}

// slicesPiece is what one run showed.
type slicesPiece struct {
	study.Made
	Kernel   string  `json:"kernel"`
	HostCPUs int     `json:"host_cpus"`
	K        int     `json:"k"`
	Round    int     `json:"round"`
	Seconds  float64 `json:"seconds"`
	Quota    float64 `json:"quota_cpus"`
	// The service's responses, in ms from when each was to be asked.
	Requests uint64   `json:"requests"`
	P50      *float64 `json:"p50_ms"`
	P99      *float64 `json:"p99_ms"`
	Longest  *float64 `json:"longest_ms"`
	// Of the cgroup.
	Periods   uint64  `json:"periods"`
	Throttled uint64  `json:"throttled_periods"`
	UsedCPUs  float64 `json:"used_cpus"`
}

// same tells whether a record is of the same run.
func (p slicesPiece) same(q slicesPiece) bool {
	return p.Kernel == q.Kernel && p.HostCPUs == q.HostCPUs && p.K == q.K && p.Round == q.Round
}

// scenario is the service and the workers beside it: a thread for each CPU, which works for 50 us and sleeps for 10 ms, as fibtest's.
func (h slicesHost) scenario(seconds float64) (scenario.Scenario, error) {
	return scenario.Parse("slices", fmt.Appendf(nil, `version: 1
duration: %v
host: {cpus: %d}
cgroups: {app: {quota: %v, period: 100ms}}
workloads:
  web: {kind: service, cgroup: app, threads: 8, work: {exponential: 2ms}, arrivals: {per_second: 60}}
  workers: {kind: sleep-run, cgroup: app, threads: %d, run: 50us, sleep: 10ms}
`, time.Duration(seconds*float64(time.Second)), h.cpus, h.quota, h.cpus))
}

// slicesInside runs one piece in the guest and prints it.
func slicesInside(ctx context.Context, text string) error {
	var p slicesPiece
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("the piece %.200q: %w", text, err)
	}
	i := slices.IndexFunc(slicesHosts, func(h slicesHost) bool { return h.cpus == p.HostCPUs })
	if i < 0 {
		return fmt.Errorf("%d CPUs: no host of this experiment has as many", p.HostCPUs)
	}
	s, err := slicesHosts[i].scenario(p.Seconds)
	if err != nil {
		return err
	}
	host, err := cgroup.Open("/proc")
	if err != nil {
		return err
	}
	const late = time.Second // what the load generator sends late is in each figure, on each kernel alike
	real, err := realrun.Run(ctx, s, realrun.Options{Host: host, Seed: uint64(p.Round), LateAfter: late, Exe: toolPath})
	if err != nil {
		return err
	}
	web, app := real.Outcome.Workloads["web"], real.Outcome.Cgroups["app"]
	p.Made, p.Seconds = study.Now(time.Now()), real.Outcome.Seconds
	p.Requests, p.P50, p.P99, p.Longest = web.Count, web.P50, web.P99, web.Max
	p.Periods, p.Throttled, p.UsedCPUs = app.Periods, app.ThrottledPeriods, app.UsageSeconds/real.Outcome.Seconds
	if p.P99 == nil {
		return errors.New("the service answered nothing")
	}
	return json.NewEncoder(os.Stdout).Encode(p)
}

// toolPath is unthrottle in the guest, whose children the service and its load are.
const toolPath = "/published/unthrottle"

// measureSlices runs what no record has, each in a guest of its own. built is the folder of the kernels that make lab-kernel-affected
// builds.
func measureSlices(ctx context.Context, o options, have *study.Lines[slicesPiece]) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	for round := 1; round <= o.rounds; round++ {
		for _, h := range slicesHosts {
			for _, k := range slicesKernels {
				p := slicesPiece{Kernel: k.name, HostCPUs: h.cpus, K: h.k, Round: round, Seconds: o.each.Seconds(),
					Quota: h.quota.Seconds() / (100 * time.Millisecond).Seconds()}
				if slices.ContainsFunc(have.All, p.same) {
					continue
				}
				kernel := k.name
				if k.file != "" {
					kernel = filepath.Join(o.built, k.file)
					if _, err := os.Stat(kernel); err != nil {
						return fmt.Errorf("the kernel on which %s: %w: make lab-kernel-affected builds it", k.name, err)
					}
				}
				text, err := json.Marshal(p)
				if err != nil {
					return err
				}
				in := inguest.Guest{Lab: o.lab, CPUs: h.cpus, Kernel: kernel, K: h.k, Files: map[string]string{programPath: program,
					toolPath: o.exe}}
				last, err := in.Run(ctx, time.Minute+3*o.each, programPath, slicesCommand, string(text))
				if err != nil {
					return err
				}
				if err := json.Unmarshal(last, &p); err != nil {
					return fmt.Errorf("the guest ended with %.200q: %w", last, err)
				}
				fmt.Fprintf(os.Stderr, "%s  %d CPUs, %s, round %d: %d of %d periods throttled at %.2f of %.2f CPUs, p99 %.1f ms\n",
					time.Now().Format(time.TimeOnly), h.cpus, k.name, round, p.Throttled, p.Periods, p.UsedCPUs, p.Quota, *p.P99)
				if err := have.Add(p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
