package forecast

import (
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

const (
	// reportedSteal is the share of steal from which on a note tells it. minCharged is the least share of the
	// time on CPUs that counts as charged.
	reportedSteal, minCharged = 0.01, 0.5
)

// setCharged computes the share of the threads' time on CPUs that the kernel charged. The clock of tasks
// leaves out what the hypervisor took meanwhile (update_rq_clock_task with CONFIG_PARAVIRT_TIME_ACCOUNTING,
// kernel/sched/core.c). So do the quota and usage, the container's own counter; nil: unknown.
func (l *Load) setCharged(usage *int64) {
	l.charged = 1
	if usage == nil || l.recorded.cpu <= 0 {
		return
	}
	l.charged = min(1, max(minCharged, float64(*usage)/float64(l.recorded.cpu)))
	l.recorded.cpu = l.chargedFor(l.recorded.cpu)
	if l.charged < 1-reportedSteal {
		l.note("the hypervisor took %.1f %% of the time for which threads had a CPU: the forecast assumes the same "+
			"share", 100*(1-l.charged))
	}
}

// chargedFor is the CPU time that the kernel charges for a time on CPUs.
func (l *Load) chargedFor(d time.Duration) time.Duration {
	return time.Duration(l.charged * float64(d))
}

// stretchQuotas makes quotas last as long as on CPUs with steal. A replay's threads have a CPU for the
// recorded time, of which the kernel charged only a part. Remedies are in force already, so a narrowed width
// does not change.
func (l *Load) stretchQuotas(s *scenario.Scenario) {
	if l.charged >= 1 {
		return
	}
	for i := range s.Cgroups {
		if limit := &s.Cgroups[i].Limit; limit.Limited() {
			limit.Quota = bandwidth.QuotaOf(limit.CPUs()/l.charged, limit.Period)
			limit.Burst = min(limit.Quota, time.Duration(float64(limit.Burst)/l.charged).Truncate(bandwidth.Unit))
		}
	}
}
