package agreement

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/stats"
)

func TestCompareShares(t *testing.T) {
	s := scenario.Scenario{Cgroups: []scenario.Cgroup{
		{Name: "a", Limit: bandwidth.Limit{Quota: 50 * time.Millisecond, Period: 100 * time.Millisecond}},
		{Name: "free", Limit: bandwidth.Limit{Quota: bandwidth.NoQuota}},
	}}
	run := func(throttled uint64, usage float64) scenario.Outcome {
		return scenario.Outcome{Seconds: 10, Cgroups: map[string]scenario.CgroupOutcome{
			"a": {Periods: 100, ThrottledPeriods: throttled, UsageSeconds: usage}, "free": {UsageSeconds: 1}}}
	}
	rows := CompareShares("one", s, []scenario.Outcome{run(100, 5)}, []scenario.Outcome{run(97, 4), run(90, 5), run(96, 4.4)})
	if len(rows) != 2 || rows[0].Apart() || !rows[1].Apart() || math.Abs(stats.Median(rows[1].Real)-0.88) > 1e-9 {
		t.Fatalf("%+v", rows)
	}
	if got := rows[1].String(); got != "one: CPU use of a: simulated 100.0 %, real 88.0 %" {
		t.Error(got)
	}
	both := AllCPUs{Rows: rows}
	if both.Within() != 1 || both.Worst().Figure != Use {
		t.Errorf("%d within, %v", both.Within(), both.Worst())
	}
}
