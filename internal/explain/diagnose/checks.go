package diagnose

import (
	"fmt"
	"math"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Bounds of the checks.
const (
	exactRatio  = 0.001 // both count the same switches
	usageRatio  = 0.01  // the kernel updates its counter at ticks
	stealRatio  = 0.01  // with more steal the usage counter, which leaves steal out, does not compare
	unknownTick = int64(10_000_000)
	// stealUnit is the unit in which /proc/stat tells steal, in ns (USER_HZ). preemptedLate is the longest time
	// from the wake-up of another owner's thread to its switch on the mean (measured: 5 to 12 us).
	stealUnit     = 1e7
	preemptedLate = 15e3
	// preemptsWithin is how soon after its wake-up a thread that preempts another one runs.
	preemptsWithin = int64(50_000)
)

// checks compares the sums over events with the kernel's own sums.
func (a *Analysis) checks(f *recording.Footer) []Check {
	ours := integral(a.width.time)
	return []Check{a.checkOnCPU(f, ours), a.checkHistogram(f), a.checkUsage(f, ours)}
}

func (a *Analysis) checkOnCPU(f *recording.Footer, ours float64) Check {
	c := Check{Name: "width against time on CPUs"}
	if f.OnCPUNS == nil {
		c.Note = "the recording has no time on CPUs"
		return c
	}
	sum := 0.0
	for _, d := range f.OnCPUNS {
		sum += float64(d)
	}
	return c.judge(ours, sum, exactRatio*math.Max(ours, sum))
}

// checkHistogram compares the events' histogram of width with the probe's, bar by bar. In an emulated or
// crowded guest the probe's may have a change too late. Such a change moves at most LateNS from one bar to
// the next.
func (a *Analysis) checkHistogram(f *recording.Footer) Check {
	c := Check{Name: "width against the probe's histogram"}
	if f.WidthNS == nil {
		c.Note = "the recording has none"
		return c
	}
	off, all := 0.0, 0.0
	for i := range max(len(f.WidthNS), len(a.width.time)) {
		theirs, ours := int64(0), int64(0)
		if i < len(f.WidthNS) {
			theirs = f.WidthNS[i]
		}
		if i < len(a.width.time) {
			ours = a.width.time[i]
		}
		off += math.Abs(float64(theirs) - float64(ours))
		all += float64(ours)
	}
	// Time that one bar lacks, another bar has too much.
	return c.judge(all+off/2, all, exactRatio*all+float64(f.LateNS))
}

// checkUsage compares with the cgroup's own usage counter. That counter leaves steal out, and the kernel
// updates it at ticks.
//
// If a thread wakes on an idle CPU, the kernel charges it from the wake-up on, and not from the switch. The
// switch skips the clock update (wakeup_preempt, rq_clock_skip_update). With 6,000 runs of 0.3 ms a second
// that was 2.4 %. So the counter may be ahead by that time, which is known.
//
// In the same way a thread that preempts another one is charged from its wake-up on, and the other one up to then
// only. With 2,500 preemptions a second by the container, that was 19 %. Of a preemption by another owner the
// recording does not have the wake-up, so the counter may be behind by preemptedLate for each. With 4,000 of them
// a second, by a client on the same CPU, that was 6.7 %.
func (a *Analysis) checkUsage(f *recording.Footer, ours float64) Check {
	c := Check{Name: "time on CPUs against the usage counter"}
	if f.UsageNS == nil {
		c.Note = "the recording has no usage counter"
		return c
	}
	steal, unsure, used := 0.0, 0.0, 0
	for n, cpu := range a.cpus {
		if cpu.onCPU == 0 {
			continue
		}
		used++
		if s := f.StealNS[n]; s > 0 && cpu.busy > 0 {
			steal += float64(s) * float64(cpu.onCPU) / float64(cpu.busy)
			unsure += stealUnit
		}
	}
	if ours > 0 && steal/ours > stealRatio {
		c.Note = fmt.Sprintf("%.1f %% steal on the CPUs used", 100*steal/ours)
		return c
	}
	tick := a.tick()
	usage := float64(*f.UsageNS)
	least := ours - steal - unsure - float64(a.preempted)*preemptedLate
	most := ours - max(0, steal-unsure) + float64(a.chargedEarly)
	c = c.judge(min(max(usage, least), most), usage, math.Max(usageRatio*math.Max(ours, usage), float64(tick)*float64(used)))
	if f.StealNS == nil {
		c.Note = "steal is not known"
	}
	return c
}

// tick is the time between two timer interrupts of the host. If HZ is unknown it is the longest that kernels
// have.
func (a *Analysis) tick() int64 {
	if hz := a.h.Host.HZ; hz != nil && *hz > 0 {
		return 1e9 / int64(*hz)
	}
	return unknownTick
}

// judge compares two figures that may differ by bound.
func (c Check) judge(ours, theirs, bound float64) Check {
	off := math.Abs(ours - theirs)
	ratio := 0.0
	if off > 0 {
		ratio = off / math.Max(math.Abs(theirs), 1)
		if math.Abs(theirs) < 1 {
			ratio = 1
		}
	}
	c.ErrorRatio = &ratio
	c.OK = off <= bound
	return c
}
