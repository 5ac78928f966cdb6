// Package coarse foretells a container's throttling period by period instead of
// event by event, for whole fleets: tens of millions of container-periods a
// second and core, where package simulate does some thousands.
//
// # Rule
//
// Work that arrives in a period joins what was left over. The container runs it
// as wide as its threads allow until the work is done, the period is over, or
// the quota is spent; in the last case it stands still until the period's end.
// What a CPU overruns between two ticks is taken from the next period
// (kernel/sched/fair.c: runtime_remaining below 0 is paid back first). Unused
// quota is kept up to the burst (__refill_cfs_bandwidth_runtime, Linux 5.14).
//
// What it leaves out: slices and what CPUs keep of them, other containers, the
// order of threads, work that arrives late in its period. Its error against
// package simulate is measured by the tests and told in docs/reference/simulate.md.
package coarse

// Limit of one container. Times are in nanoseconds.
type Limit struct {
	QuotaNS, PeriodNS, BurstNS int64
	// TickNS is 1/HZ: how late a spent quota is noticed; 0: at once.
	TickNS int64
}

// State of one container between two periods. The zero value is one that has been idle.
type State struct {
	// BacklogNS is work left over.
	BacklogNS int64
	// SavedNS is quota saved up for a burst, or below 0 what was overrun.
	SavedNS int64
}

// Period is what one period brought.
type Period struct {
	UsedNS, StoppedNS int64
	Throttled         bool
}

// Step runs one period in which workNS of CPU time arrives, at most width CPUs in use at once. It allocates nothing.
func (s *State) Step(l *Limit, workNS int64, width int32) Period {
	want := s.BacklogNS + workNS
	if want <= 0 || width <= 0 {
		// What was overrun is paid first here too: a throttled CPU is in debt until a refill, whoever still runs there.
		s.SavedNS = min(s.SavedNS+l.QuotaNS, l.BurstNS)
		s.BacklogNS = max(want, 0)
		return Period{}
	}
	// A pool never holds more than quota and burst; what was overrun is paid first.
	have := l.QuotaNS + s.SavedNS
	room := int64(width) * l.PeriodNS
	if want <= have || room <= have {
		used := min(want, room)
		s.BacklogNS = want - used
		s.SavedNS = min(have-used, l.BurstNS)
		return Period{UsedNS: used}
	}
	if have <= 0 {
		s.BacklogNS = want
		s.SavedNS = have
		return Period{StoppedNS: l.PeriodNS, Throttled: true}
	}
	// Each CPU runs on for half a tick on average before it is noticed.
	used := min(have+int64(width)*l.TickNS/2, want, room)
	s.BacklogNS = want - used
	s.SavedNS = have - used
	ran := used / int64(width)
	p := Period{UsedNS: used, StoppedNS: l.PeriodNS - ran}
	// Work that the overrun finished leaves nobody to stand still.
	if s.BacklogNS == 0 {
		p.StoppedNS = 0
	}
	p.Throttled = p.StoppedNS > 0
	return p
}

// Sum is what many periods brought.
type Sum struct {
	Periods, Throttled uint64
	UsedNS, StoppedNS  int64
}

// Run steps through a demand: workNS and width by period, as a flight recorder keeps them.
func Run(l *Limit, workNS []int64, width []int32) Sum {
	var s State
	var sum Sum
	for i, w := range workNS {
		active := w > 0 || s.BacklogNS > 0
		p := s.Step(l, w, width[i])
		if !active {
			continue
		}
		sum.Periods++
		if p.Throttled {
			sum.Throttled++
		}
		sum.UsedNS += p.UsedNS
		sum.StoppedNS += p.StoppedNS
	}
	return sum
}
