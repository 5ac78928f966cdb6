package budgetprom

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/unthrottle/unthrottle/libs/go/budget"
)

type snapshot budget.Snapshot

func (s snapshot) Snapshot() budget.Snapshot { return budget.Snapshot(s) }

func TestCollector(t *testing.T) {
	s := snapshot{LimitCPUs: new(float64), Periods: new(uint64), Stopped: new(uint64), Paced: true}
	*s.LimitCPUs, *s.Periods, *s.Stopped = 0.7, 10, 3
	s.Classes[budget.App] = budget.ClassSnapshot{Permits: 1, Running: 1, Waiting: 2, Finished: 3, Held: 4, Late: 5}
	c := Collector(s)
	err := testutil.CollectAndCompare(c, strings.NewReader(`
# HELP unthrottle_budget_limit_cpus CPU limit in force; absent without one.
# TYPE unthrottle_budget_limit_cpus gauge
unthrottle_budget_limit_cpus 0.7
# HELP unthrottle_budget_throttled_periods_total Periods in which the kernel stopped that cgroup (nr_throttled).
# TYPE unthrottle_budget_throttled_periods_total counter
unthrottle_budget_throttled_periods_total 3
# HELP unthrottle_budget_waiting_tasks Tasks that wait.
# TYPE unthrottle_budget_waiting_tasks gauge
unthrottle_budget_waiting_tasks{class="app"} 2
unthrottle_budget_waiting_tasks{class="background"} 0
unthrottle_budget_waiting_tasks{class="io"} 0
# HELP unthrottle_budget_late_tasks_total Tasks that were rejected, since they would have started too late.
# TYPE unthrottle_budget_late_tasks_total counter
unthrottle_budget_late_tasks_total{class="app"} 5
unthrottle_budget_late_tasks_total{class="background"} 0
unthrottle_budget_late_tasks_total{class="io"} 0
`), "unthrottle_budget_limit_cpus", "unthrottle_budget_used_cpus", "unthrottle_budget_throttled_periods_total",
		"unthrottle_budget_waiting_tasks", "unthrottle_budget_late_tasks_total")
	if err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}
