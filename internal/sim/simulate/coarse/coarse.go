// Package coarse predicts a container's throttling period by period instead of
// event by event. It is meant for whole fleets: it steps through tens of millions of
// container-periods a second on one core, package simulate through some thousands.
//
// # Rule
//
// Work that arrives in a period joins the backlog. The container runs the backlog
// as wide as its threads allow. It ends when the work is done, the period is over or
// the quota is spent. In the last case the quota stops it until the period's end.
//
// The kernel notices a spent quota at a tick. It takes the overrun from the next
// period (kernel/sched/fair.c: it first pays back a negative runtime_remaining). It
// keeps unused quota up to the burst (__refill_cfs_bandwidth_runtime, Linux 5.14).
//
// # Worked example
//
// A limit of 200 ms per 100 ms, 400 ms of work, 11 threads: the container spends the
// quota in 18.2 ms, is stopped for 81.8 ms, and leaves a backlog of 200 ms.
//
// # Limits
//
// The model leaves out slices, other containers, the order of threads and the
// arrival time within a period. docs/results/coarse.md has its error against package
// simulate. internal/demand/periodmodel steps it under many limits at once.
package coarse

// Limit of one container. Times are in nanoseconds.
type Limit struct {
	QuotaNS, PeriodNS, BurstNS int64
	// TickNS is 1/HZ, the time after which a CPU notices a spent quota; 0: at once.
	TickNS int64
}

// State of one container between two periods. The zero value is an idle container.
type State struct {
	// BacklogNS is work that is not done yet.
	BacklogNS int64
	// SavedNS is quota saved for a burst, or, below 0, the overrun.
	SavedNS int64
}

// Period is the outcome of one period.
type Period struct {
	UsedNS, StoppedNS int64
	Throttled         bool
}

// Step runs one period in which workNS of CPU time arrives and at most width CPUs are
// in use at once. It allocates nothing.
func (s *State) Step(l *Limit, workNS int64, width int32) Period {
	want := s.BacklogNS + workNS
	if want <= 0 || width <= 0 {
		// An idle period pays the overrun too: a throttled CPU stays in debt until a refill.
		s.SavedNS = min(s.SavedNS+l.QuotaNS, l.BurstNS)
		s.BacklogNS = max(want, 0)
		return Period{}
	}
	// A pool never holds more than quota and burst, and it pays the overrun first.
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
	// On average each CPU runs for half a tick more before the kernel notices.
	used := min(have+int64(width)*l.TickNS/2, want, room)
	s.BacklogNS = want - used
	s.SavedNS = have - used
	ran := used / int64(width)
	p := Period{UsedNS: used, StoppedNS: l.PeriodNS - ran}
	// Where the overrun finished the work no thread waits.
	if s.BacklogNS == 0 {
		p.StoppedNS = 0
	}
	p.Throttled = p.StoppedNS > 0
	return p
}

// StepPart runs one of so many equal parts of a period, the first at 0. The quota comes with the first, on top of what was saved, and
// the others have what is left of both. The outcome is of the part.
func (s *State) StepPart(l *Limit, parts, at, workNS int64, width int32) Period {
	part := Limit{PeriodNS: l.PeriodNS / parts, BurstNS: l.QuotaNS + l.BurstNS, TickNS: l.TickNS}
	if at == 0 {
		part.QuotaNS, s.SavedNS = l.QuotaNS, min(s.SavedNS, l.BurstNS)
	}
	return s.Step(&part, workNS, width)
}

// Sum adds many periods.
type Sum struct {
	Periods, Throttled uint64
	UsedNS, StoppedNS  int64
}

// Run steps through a demand: workNS and width for each period, as the flight
// recorder keeps them.
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
