package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// countAll counts up to now everything that is otherwise counted at its next change.
func (a *Analysis) countAll() {
	for _, c := range a.cpus {
		a.countHolder(c)
	}
}

// Finish ends the analysis. Call it once, and add no event afterwards.
func (a *Analysis) Finish(f recording.Footer) Explanation {
	a.advance(min(f.EndNS, schedule.MaxAtNS))
	a.reader.Finish()
	for _, c := range a.cpus {
		a.countHolder(c)
		a.countWaiters(c)
	}
	a.endStops()
	for _, t := range a.threads {
		if t == nil {
			continue
		}
		a.leavePool(t)
		if t.State == schedule.Held {
			a.pools.all[t.pool].waiting.add(quotaReason(&a.levels.all[t.Level]), a.now-t.heldAt)
			t.heldAt = a.now
		}
	}
	for _, p := range a.pools.all {
		p.want(a.now, 0)
		if p.held > 0 {
			p.stopped += a.now - p.heldAt
			p.heldAt = a.now
		}
		if p.running > 0 {
			p.busy += a.now - p.busyAt
			p.busyAt = a.now
		}
	}
	for _, t := range a.tracks {
		if a.now > t.start {
			t.partial = true // the recording ended before the row
			t.close(a, a.now, false)
		}
		if len(t.block.rows) > 0 {
			t.keep()
		}
	}
	a.takeSteal(&f)
	a.takeRealtime()

	figures := a.figures(&f)
	e := a.explanation(&f, figures)
	e.Levels, e.LimitChanges = slices.Concat(a.h.Levels, a.h.SubLevels), a.limits.Finish(&f)
	if why := recording.LimitsChanged(a.h.Target.Path, e.LimitChanges); why != "" {
		e.Undecided(why)
		return e
	}
	conclude(&e, figures)
	return e
}

// bindingTrack is the track whose rows the explanation shows: that of the binding level.
func (a *Analysis) bindingTrack() *track {
	binding := a.levels.binding()
	for _, t := range a.tracks {
		if t.level == binding {
			return t
		}
	}
	return a.tracks[0]
}

func (a *Analysis) explanation(f *recording.Footer, recorded *figures) Explanation {
	lead := a.bindingTrack()
	waits := a.reasonsMeasured(f, recorded)
	e := Explanation{
		Target: a.h.Target.Name, Start: a.h.Created, Window: span(a.now), LimitCPUs: a.limit,
		Periods: recorded.periods, ThrottledPeriods: recorded.throttledPeriods, MeanWidth: &recorded.meanWidth,
		Width: a.width.bars(), Wanted: a.wanted.bars(), SampledWidth: a.sampled.bars(), Timeline: lead.timeline(),
		Overview: a.overview.stretches(),
		Waiting:  recorded.waiting.byReason(waits), Neighbours: a.owners.neighbours(f, a.now),
		RunnablePerCore: a.runnablePerCore(), LostEvents: &recorded.lost, Checks: a.checks(f),
		LimitUnknown: a.limit == nil && len(a.h.Levels) == 0,
		Pools:        []PoolUse{}, NotMeasured: slices.Clone(a.h.NotMeasured),
	}
	if e.Target == "" {
		e.Target = a.h.Target.Path
	}
	if recorded.measured {
		e.Stopped, e.StoppedIntervals = new(span(a.stopped)), new(a.stoppedIntervals.count)
	} else {
		e.NotMeasured = append(e.NotMeasured, "stopped time: the kernel does not show which threads a quota holds back")
	}
	if l := a.levels.unlisted(); float64(l.stopped) >= max(1, Negligible*float64(a.now)) {
		e.NotMeasured = append(e.NotMeasured, fmt.Sprintf("whose quota stopped it for %s: of a cgroup that the recording does not list, "+
			"such as one that was made during it; record again", formatTime(l.stopped)))
	}
	for i, p := range a.pools.all {
		if !p.any() {
			if p.size > 0 {
				e.IdlePools = append(e.IdlePools, p.use(lead.index, lead.level >= 0, waits))
			}
			continue
		}
		e.Pools = append(e.Pools, p.use(lead.index, lead.level >= 0, waits))
		if w := p.cost.width(); w != nil && (e.CostOfWidth == nil || p.cpu > a.pools.all[recorded.costPool].cpu) {
			e.CostOfWidth, recorded.costPool = w, i
		}
	}
	e.ClosedLoop, e.Startup = a.closedLoop(), a.starting.startup(recorded)
	slices.SortStableFunc(e.Pools, func(x, y PoolUse) int {
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), strings.Compare(x.Name, y.Name), strings.Compare(x.Process, y.Process))
	})
	e.NotMeasured = append(e.NotMeasured, a.warnings(f)...)
	return e
}

// reasonsMeasured returns the reasons of waiting that the recording measures. It has no quotas if the kernel
// does not show which threads they hold back, and no steal if the probe did not read /proc/stat.
func (a *Analysis) reasonsMeasured(f *recording.Footer, recorded *figures) [reasons]bool {
	return [reasons]bool{
		byOwnQuota: recorded.measured, byAncestor: recorded.measured, byOwnThreads: true, byNeighbour: true, byHost: true,
		bySteal: f.StealNS != nil, byIdle: true, byRealtime: recorded.realtime,
	}
}

// manyUnseen is the share of switches without an event from which on a warning tells it. Linux 6.18 leaves
// out one in a thousand.
const manyUnseen = 0.01

// warnings returns warnings about the events themselves.
func (a *Analysis) warnings(f *recording.Footer) []string {
	var all []string
	if n := f.UnseenSwitches; n > 0 && float64(n) > manyUnseen*float64(a.switches) {
		all = append(all, fmt.Sprintf("the kernel reported no event for %d switches: wanted and waiting may be off", n))
	}
	for _, trouble := range f.Troubles {
		all = append(all, fmt.Sprintf("in the probe: %s: figures may be off", trouble))
	}
	for _, d := range []struct {
		n    uint64
		text string
	}{
		{a.contradictions, "events are inconsistent: figures of single threads may be inaccurate"},
		{a.outOfOrder, "events came out of order: their times were moved"},
		{a.unknownThreads, fmt.Sprintf("events are of threads beyond %d at once: they count for width, not for "+
			"wanted and pools", schedule.MaxThreads)},
	} {
		if d.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", d.n, d.text))
		}
	}
	return all
}

// runnablePerCore is the mean of wanted while any thread wants a CPU, over the reserved CPUs: the limit, or the
// allowed CPUs.
func (a *Analysis) runnablePerCore() *float64 {
	reserved := float64(a.h.CPUsAllowed.Size())
	if a.limit != nil && (reserved == 0 || *a.limit < reserved) {
		reserved = *a.limit
	}
	if reserved == 0 {
		return nil
	}
	any := 0.0
	for i, d := range a.wanted.time {
		if i > 0 {
			any += float64(d)
		}
	}
	if any == 0 {
		return new(0.0)
	}
	return new(integral(a.wanted.time) / any / reserved)
}

// takeSteal moves waiting for a CPU that the hypervisor held to Steal. No event says when that was, so it
// takes the same share of all waiting on that CPU.
func (a *Analysis) takeSteal(f *recording.Footer) {
	if f.StealNS == nil {
		return
	}
	stolen, waited := 0.0, 0.0
	for n, c := range a.cpus {
		waited += float64(c.waited)
		if s := f.StealNS[n]; s > 0 && c.busy > 0 {
			stolen += float64(c.waited) * min(1, float64(s)/float64(c.busy))
		}
	}
	if stolen <= 0 || waited <= 0 {
		return
	}
	share := stolen / waited
	for _, p := range a.pools.all {
		for _, r := range []int{byOwnThreads, byNeighbour, byHost} {
			d := int64(float64(p.waiting[r]) * share)
			if d > 0 {
				p.waiting[r] -= d
				p.waiting.add(bySteal, d)
			}
		}
	}
}

// takeRealtime moves what pools of real-time threads waited for CPUs to RealtimeLimit: such a thread does not wait for ordinary
// ones, and who holds the CPU meanwhile is let run by that limit. Of a pool that has ordinary threads too it is not known whose
// waiting that was: it stays what it looks like.
func (a *Analysis) takeRealtime() {
	for _, p := range a.pools.all {
		if !p.realtime || p.ordinary {
			continue
		}
		for _, r := range []int{byOwnThreads, byNeighbour, byHost, byIdle} {
			p.waiting[byRealtime] += p.waiting[r]
			p.waiting[r] = 0
		}
	}
}
