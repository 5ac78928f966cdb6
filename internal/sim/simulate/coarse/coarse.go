// Package coarse predicts a container's throttling period by period instead of event by event, for whole
// fleets. It steps through tens of millions of container-periods a second and core, where package simulate
// does some thousands.
//
// # Rule
//
// Work that arrives in a period joins the backlog. The container runs it as wide as its threads allow until
// the work is done, the period is over, or the quota is spent. In the last case it is stopped until the
// period's end. The next period pays the overrun of a CPU between two ticks (kernel/sched/fair.c: a refill
// pays runtime_remaining below 0 first). The group keeps unused quota up to the burst
// (__refill_cfs_bandwidth_runtime, Linux 5.14).
//
// It leaves out slices and the parts of them that CPUs keep, other containers, the order of threads, and work
// that arrives late in its period. The tests measure its error against package simulate, and
// docs/reference/simulate.md has it.
package coarse

// Limit of one container. Times are in nanoseconds.
type Limit struct {
	QuotaNS, PeriodNS, BurstNS int64
	// TickNS is 1/HZ, the time after which a CPU notices a spent quota; 0: at once.
	TickNS int64
}

// State of one container between two periods. The zero value is a container that has been idle.
type State struct {
	// BacklogNS is work left over.
	BacklogNS int64
	// SavedNS is quota saved for a burst, or below 0 the overrun.
	SavedNS int64
}

// Period is the result of one period.
type Period struct {
	UsedNS, StoppedNS int64
	Throttled         bool
}

// Step runs one period in which workNS of CPU time arrives, with at most width CPUs in use at once. It
// allocates nothing.
func (s *State) Step(l *Limit, workNS int64, width int32) Period {
	want := s.BacklogNS + workNS
	if want <= 0 || width <= 0 {
		// The refill pays the overrun first here too: a throttled CPU is in debt until a refill, whichever
		// thread runs there.
		s.SavedNS = min(s.SavedNS+l.QuotaNS, l.BurstNS)
		s.BacklogNS = max(want, 0)
		return Period{}
	}
	// A pool never holds more than quota and burst; the refill pays the overrun first.
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
	// Each CPU runs on for half a tick on average before it notices.
	used := min(have+int64(width)*l.TickNS/2, want, room)
	s.BacklogNS = want - used
	s.SavedNS = have - used
	ran := used / int64(width)
	p := Period{UsedNS: used, StoppedNS: l.PeriodNS - ran}
	// If the overrun finished the work, no thread is stopped.
	if s.BacklogNS == 0 {
		p.StoppedNS = 0
	}
	p.Throttled = p.StoppedNS > 0
	return p
}

// Sum is the result of many periods.
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
