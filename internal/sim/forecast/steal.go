package forecast

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/scenario"
)

const (
	// toldSteal is what is told of it, and leastCharged how much of the time on CPUs is charged at least.
	toldSteal, leastCharged = 0.01, 0.5
)

// charge notes how much of the time for which threads had a CPU the kernel charged: its clock of tasks leaves out what the
// hypervisor took meanwhile (update_rq_clock_task with CONFIG_PARAVIRT_TIME_ACCOUNTING, kernel/sched/core.c), and so do the
// quota and usage, the container's own counter; nil: not known.
func (l *Load) charge(usage *int64) {
	l.charged = 1
	if usage == nil || l.Recorded.CPU <= 0 {
		return
	}
	l.charged = min(1, max(leastCharged, float64(*usage)/float64(l.Recorded.CPU)))
	l.Recorded.CPU = l.paid(l.Recorded.CPU)
	if l.charged < 1-toldSteal {
		l.note("the hypervisor took %.1f %% of the time for which threads had a CPU: it is taken to go on so", 100*(1-l.charged))
	}
}

// paid is the CPU time that is charged for a time on CPUs.
func (l *Load) paid(d time.Duration) time.Duration { return time.Duration(l.charged * float64(d)) }

// outlast makes quotas last as long as they do on CPUs of which the hypervisor takes a share: a replay's threads have theirs
// for as long as they were recorded, and that is more than is charged. Remedies are in force already: a width stays as it is.
func (l *Load) outlast(s *scenario.Scenario) {
	if l.charged >= 1 {
		return
	}
	for i := range s.Cgroups {
		if limit := &s.Cgroups[i].Limit; limit.Limited() {
			limit.Quota = time.Duration(float64(limit.Quota) / l.charged)
			limit.Burst = time.Duration(float64(limit.Burst) / l.charged)
		}
	}
}
