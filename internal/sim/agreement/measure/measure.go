// Package measure makes the real runs of package agreement, and says what others
// had of the CPUs meanwhile.
//
// # Limits
//
// Steal and idle time are the host's own counts (/proc/stat); in a container both
// are of the whole host, which is what disturbs.
package measure

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
)

// Machine describes this host to draws of so many CPUs. An error names the part that
// is unknown.
func Machine(h *cgroup.Host, cpus int) (agreement.Machine, error) {
	k := features.ReadKernel(os.DirFS("/"), features.Unknown, features.Unknown)
	if k.HZ == nil {
		return agreement.Machine{}, fmt.Errorf("the kernel's HZ is in neither /proc/config.gz nor /boot/config-%s: "+
			"make one of them readable", k.Release)
	}
	return MachineOf(h, cpus, k.Release, *k.HZ), nil
}

// MachineOf describes a host with a kernel of that release and HZ.
func MachineOf(h *cgroup.Host, cpus int, release string, hz int) agreement.Machine {
	if i := strings.IndexFunc(release, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i >= 0 {
		release = release[:i]
	}
	m := agreement.Machine{CPUs: cpus, HZ: hz, Kernel: strings.TrimSuffix(release, "."), CgroupVersion: 2}
	if v, _ := h.Version(cgroup.CPU); v == cgroup.V1 {
		m.CgroupVersion = 1
	}
	return m
}

// Real runs a draw for real.
func Real(ctx context.Context, d agreement.Draw, m agreement.Machine, duration time.Duration, o realrun.Options) (agreement.Result, error) {
	r := agreement.Result{Seed: d.Seed, Key: d.Key(), Machine: m, Seconds: duration.Seconds()}
	run, noise, err := Run(ctx, d.Lasting(duration), o)
	if err != nil {
		return r, fmt.Errorf("draw %d: %w", d.Seed, err)
	}
	r.Outcome, r.Noise = run.Outcome, noise
	return r, nil
}

// Run runs a scenario for real, and says what others had of the CPUs meanwhile.
func Run(ctx context.Context, s scenario.Scenario, o realrun.Options) (realrun.Result, agreement.Noise, error) {
	before, err := look(o.Host)
	if err != nil {
		return realrun.Result{}, agreement.Noise{}, err
	}
	run, err := realrun.Run(ctx, s, o)
	if err != nil {
		return run, agreement.Noise{}, err
	}
	after, err := look(o.Host)
	return run, noise(before, after), err
}

// calibration is how long each takes, and calibrations how often: the median counts,
// since what disturbs one makes it dearer.
const (
	calibration  = time.Second
	calibrations = 3
)

// WakeCosts measures what a sleep and a wake-up cost here.
func WakeCosts(ctx context.Context, m agreement.Machine, o realrun.Options) (agreement.Result, error) {
	r := agreement.Result{Machine: m, Seconds: calibration.Seconds()}
	var all []scenario.WakeCosts
	for range calibrations {
		var outcomes []scenario.Outcome
		for _, s := range agreement.Calibrations(calibration) {
			run, err := realrun.Run(ctx, s, o)
			if err != nil {
				return r, fmt.Errorf("calibration: %w", err)
			}
			outcomes = append(outcomes, run.Outcome)
		}
		costs, ok := agreement.WakeCosts(outcomes)
		if !ok {
			return r, fmt.Errorf("calibration: no thread woke up in %v", calibration)
		}
		all = append(all, costs)
	}
	middle := agreement.MedianCosts(all)
	r.WakeCosts = &middle
	return r, nil
}

// own is the CPU time of this process and of those that it started, as far as they have ended.
func own() (time.Duration, error) {
	sum := time.Duration(0)
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			return 0, fmt.Errorf("getrusage: %w", err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum, nil
}

// times are sums over all CPUs.
type times struct {
	procfs.Times
	used *time.Duration // by all processes, exactly; nil: not counted
	own  time.Duration
}

// look reads the counters. On cgroup v1 the root counts CPU time exactly. Elsewhere
// there is only the idle time at ticks, which periods in step with the ticks distort.
func look(h *cgroup.Host) (times, error) {
	mine, err := own()
	if err != nil {
		return times{}, err
	}
	stat, err := procfs.ReadStat(os.DirFS("/proc"))
	t := times{Times: stat.Total, own: mine}
	if v, ok := h.Version(cgroup.CPUAcct); err != nil || !ok || v != cgroup.V1 || h.Top(cgroup.CPUAcct) != "/" {
		return t, err
	}
	s, err := cgroup.ReadStat(h, cgroup.Group{Path: h.Top(cgroup.CPU), CPUAcctPath: "/"})
	t.used = s.Usage
	return t, err
}

// noise is what neither idled nor was used by who runs and measures.
func noise(before, after times) agreement.Noise {
	cpus, own := after.Since(before.Times), after.own-before.own
	all := float64(cpus.All)
	if all <= 0 {
		return agreement.Noise{Steal: 1, Others: 1}
	}
	others := cpus.Used() - own
	if before.used != nil && after.used != nil {
		others = *after.used - *before.used - own
	}
	return agreement.Noise{Steal: float64(cpus.Steal) / all, Others: max(0, float64(others)/all)}
}
