package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// setting is one of seed 000's list of tunables: what is other than usual while a point of the plain quota is measured.
type setting struct {
	name, about string
	// file and value: what the kernel is told; "": nothing.
	file, value string
	// beside is what other containers do meanwhile; nil: there are none.
	beside func(p piece, cpus cpuset.CPUSet) (scenario.Scenario, error)
}

// settings are the rows of the page that need one. Other tunables are remedies: see tunables.
var settings = []setting{
	{"slice-1ms", "sched_cfs_bandwidth_slice_us 1000, not 5000", "/proc/sys/kernel/sched_cfs_bandwidth_slice_us", "1000", nil},
	{"slice-20ms", "sched_cfs_bandwidth_slice_us 20000, not 5000", "/proc/sys/kernel/sched_cfs_bandwidth_slice_us", "20000", nil},
	{"base-slice-500us", "base_slice_ns 500000", "/sys/kernel/debug/sched/base_slice_ns", "500000", nil},
	{"base-slice-10ms", "base_slice_ns 10000000", "/sys/kernel/debug/sched/base_slice_ns", "10000000", nil},
	{"scaling-none", "tunable_scaling none, not by the logarithm of the CPUs", "/sys/kernel/debug/sched/tunable_scaling", "0", nil},
	{"autogroup-off", "sched_autogroup_enabled 0", "/proc/sys/kernel/sched_autogroup_enabled", "0", nil},
	{"host-50", "others want half of the host", "", "", neighbours(0.5)},
	{fullHost, "others want nine tenths of the host", "", "", neighbours(0.9)},
	{"spikes-together", "three services of its size spike at the same time, 20 ms on all CPUs in each 240 ms", "", "", spikes(0)},
	{"spikes-apart", "the same three, one after the other", "", "", spikes(spikeEvery / 3)},
}

// tunables are the remedies of that list; the plain quota is what all are compared with.
var tunables = []string{capacity.Quota, capacity.Period, capacity.Burst, capacity.BurstPeriod, capacity.Twice, capacity.Weight, capacity.Pools, capacity.RateLimit}

// settingNames are the names of all settings.
func settingNames() (all []string) {
	for _, s := range settings {
		all = append(all, s.name)
	}
	return all
}

// settingOf is that of a piece; one without a name changes nothing.
func settingOf(name string) (setting, error) {
	if name == "" {
		return setting{}, nil
	}
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == name })
	if i < 0 {
		return setting{}, fmt.Errorf("no setting %.40q", name)
	}
	return settings[i], nil
}

// apply tells the kernel of the guest, and returns what tells it the old value again.
func (s setting) apply() (back func() error, err error) {
	if s.file == "" {
		return func() error { return nil }, nil
	}
	const debugfs = "/sys/kernel/debug"
	old, err := os.ReadFile(s.file)
	if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(s.file, debugfs) {
		if err := unix.Mount("debugfs", debugfs, "debugfs", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("mount %s: %w", debugfs, err)
		}
		old, err = os.ReadFile(s.file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: this kernel has no such setting: %w", s.name, err)
	}
	write := func(value string) error { return os.WriteFile(filepath.Clean(s.file), []byte(value), 0o644) }
	if err := write(s.value); err != nil {
		return nil, err
	}
	return func() error { return write(strings.TrimSpace(string(old))) }, nil
}

// load keeps other containers busy meanwhile, on the CPUs that the service may use; nil: there are none. The generator stands for clients elsewhere, whose
// CPUs no neighbour has.
func (s setting) load(host *cgroup.Host, p piece, cpus cpuset.CPUSet) func(context.Context, cgroup.Group) error {
	if s.beside == nil {
		return nil
	}
	return func(ctx context.Context, _ cgroup.Group) error {
		of, err := s.beside(p, cpus)
		if err != nil {
			return err
		}
		_, err = realrun.Run(ctx, of, realrun.Options{Host: host, Seed: uint64(p.Repeat)})
		return err
	}
}

// beside is a scenario of other containers on the guest of a piece.
func beside(p piece, cgroups, workloads string) (scenario.Scenario, error) {
	return scenario.Parse("neighbours", fmt.Appendf(nil, "version: 1\nduration: %v\nhost: {cpus: %d, hz: %d, kernel: %q, cgroup_version: 2}\ncgroups: {%s}\nworkloads: {%s}\n",
		time.Duration(p.Seconds*float64(time.Second)), p.Machine.CPUs, guestHZ, p.Machine.Kernel, cgroups, workloads))
}

// neighbours want a share of all these CPUs: a thread for each works that share of each 10 ms by the clock, all at the same time. A CPU that
// another container takes meanwhile is lost to them.
func neighbours(share float64) func(piece, cpuset.CPUSet) (scenario.Scenario, error) {
	const turn = 10 * time.Millisecond
	on := time.Duration(share * float64(turn))
	return func(p piece, cpus cpuset.CPUSet) (scenario.Scenario, error) {
		return beside(p, fmt.Sprintf("others: {cpus: %q}", cpus), fmt.Sprintf("others: {kind: neighbour, cgroup: others, threads: %d, on: %v, off: %v}", cpus.Size(), on, turn-on))
	}
}

// spikeEvery is how often each of three services spikes, for spikeFor.
const spikeEvery, spikeFor = 240 * time.Millisecond, 20 * time.Millisecond

// spikes are three services under a limit as large as the piece's, which spike on all CPUs, each so much later than the one before.
func spikes(later time.Duration) func(piece, cpuset.CPUSet) (scenario.Scenario, error) {
	return func(p piece, cpus cpuset.CPUSet) (scenario.Scenario, error) {
		var cgroups, workloads []string
		for i := range 3 {
			cgroups = append(cgroups, fmt.Sprintf("other-%d: {quota: %dms, period: 100ms, cpus: %q}", i, 100*p.Limit, cpus))
			workloads = append(workloads, fmt.Sprintf("other-%d: {kind: neighbour, cgroup: other-%d, threads: %d, on: %v, off: %v, start: %v}", i, i, cpus.Size(),
				spikeFor, spikeEvery-spikeFor, time.Duration(i)*later))
		}
		return beside(p, strings.Join(cgroups, ", "), strings.Join(workloads, ", "))
	}
}

// withSetting is a point with a setting.
func withSetting(h host, shape, remedy, name string, level, repeat int) piece {
	p := pointOf(h, shape, remedy, level, repeat)
	p.Setting = name
	return p
}

// fullHost is the setting that predictability is told by: the p99 beside others that use most of the host, over that on an empty one.
const fullHost = "host-90"

// predictable are the remedies whose predictability is compared.
var predictable = []string{noCredit, capacity.NarrowSchedExt, capacity.Burst, capacity.Weight}

// bounding are those that keep the limit, which are compared where a piece is dear.
var bounding = []string{noCredit, capacity.NarrowSchedExt, capacity.Burst}

// mostUnpredictable is the bound for narrow.
const mostUnpredictable = 1.2

// predictability is the page's table of it.
func (p *page) predictability() {
	p.Line("\n## Predictability\n\np99 of `%s` at %.0f %% while others want nine tenths of the host, over that on an empty one; for narrow at most %g. Late: p99 of how late the generator itself sent, which p99 has in it.", capacity.Shard, 100*levels[comparedLevel], mostUnpredictable)
	t := p.Table("remedy", "K", "p50 ms, empty host", "p99", "late", "p50, full host", "p99", "late", "factor of p99", "CPUs that others got")
	var faster []float64 // how much faster a guest's CPU is while it is the only busy one
	row := func(h host, name string) {
		empty, full := p.have.find(pointOf(h, capacity.Shard, name, comparedLevel, 1)), p.have.find(withSetting(h, capacity.Shard, name, fullHost, comparedLevel, 1))
		if empty == nil || full == nil || empty.Point.P99 == nil || full.Point.P99 == nil || !(*empty.Point.P99 > 0) {
			t.Rowf("%s | %d | %s", names[name], h.K, notYet)
			return
		}
		cells := []any{names[name], h.K}
		for _, of := range []*figures{empty.Point, full.Point} {
			cells = append(cells, study.Decimals(of.P50, 1), study.Decimals(of.P99, 1), study.Decimals(of.LateP99, 1))
		}
		t.Row(append(cells, fmt.Sprintf("%.2f", *full.Point.P99 / *empty.Point.P99), study.Decimals(full.Point.Others, 1))...)
		if c := full.Calibration; c.LoopRateAll > 0 && h == small {
			faster = append(faster, c.LoopRateOne/c.LoopRateAll)
		}
	}
	for _, name := range predictable {
		row(small, name)
	}
	for _, name := range bounding {
		row(patient, name)
	}
	p.Line("\nWith credit, or without any limit, a service is as fast as the host's idle CPUs let it be, and slower where there are none. Without credit it has no more on an empty host than on a full one.")
	p.Line("The others work 9 of each 10 ms, all at the same time, and have the same weight. Meanwhile no CPU is free, so that each thread that wakes up waits for one.")
	if len(faster) > 0 {
		p.Line("At K = %d a CPU of this guest is %.1f times as fast while no other one is busy. So a full host also slows what is not given as CPU time: sending, reading and switching.", small.K, stats.Median(faster))
		p.Line("Without credit, that is near all that the limit can do. At K = %d each CPU has that many times as much of the host's: these rows tell what the scheduler does, and the bound is for them.", patient.K)
	}
}

// settings are the page's rows of seed 000's list.
func (p *page) settings() {
	p.Line("\n## Seed 000's tunables\n\n`%s` on %d CPUs with a limit of %d at %.0f %%, the plain quota with one thing changed. Factor: p99 over that of the plain quota with the same requests.",
		capacity.Shard, small.CPUs, small.Limit, 100*levels[comparedLevel])
	quota := p.have.find(pointOf(small, capacity.Shard, capacity.Quota, comparedLevel, 1))
	t := p.Table("changed", "p50 ms", "p99 ms", "factor", "requests", "failed", "CPUs used", "throttled periods")
	row := func(about string, of piece) {
		r := p.have.find(of)
		if r == nil {
			t.Rowf("%s | %s", about, notYet)
			return
		}
		factor, throttled := "-", "-"
		if quota != nil && quota.Point.P99 != nil && r.Point.P99 != nil && *quota.Point.P99 > 0 {
			factor = fmt.Sprintf("%.2f", *r.Point.P99 / *quota.Point.P99)
		}
		if r.Point.Periods != nil && r.Point.Throttled != nil {
			throttled = fmt.Sprintf("%d of %d", *r.Point.Throttled, *r.Point.Periods)
		}
		t.Rowf("%s | %s | %s | %s | %d | %d | %s | %s", about, study.Decimals(r.Point.P50, 1), study.Decimals(r.Point.P99, 1), factor, r.Point.Requests, r.Point.Failed, study.Decimals(r.Point.CPUUsed, 2), throttled)
	}
	for _, name := range tunables {
		row(names[name], pointOf(small, capacity.Shard, name, comparedLevel, 1))
	}
	for _, s := range settings {
		row(s.about, withSetting(small, capacity.Shard, capacity.Quota, s.name, comparedLevel, 1))
	}
	p.Line("\nOf one repeat of %d periods: factors between 0.8 and 1.25 are as likely chance. The scheduler's features are not among them. Failed: refused by the rate limit, which lets in what the limit can carry on average, and a fifth of a period's at once.", pointSeconds*10)
}
