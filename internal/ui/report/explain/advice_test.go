package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// What a process says of itself is shown with the process, and a pool's class with the pool.
func TestBudgetText(t *testing.T) {
	b := diagnose.Budget{TGID: 7, Process: "ja\x1bva",
		Budget: threadpool.Budget{LimitCPUs: new(1.5), Paced: true, GOMAXPROCS: 3, Permits: map[string]int{"app": 2, "io": 0}}}
	want := `ja\x1bva (process 7) says that its CPU budget is in force: limit 1.5 CPUs, pacing on, any number of io tasks at once, 2 app tasks at once, GOMAXPROCS 3.`
	if got := budgetText(b); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := budgetText(diagnose.Budget{TGID: 7, Process: "x"}); !strings.Contains(got, "it knows of no limit, pacing off.") {
		t.Errorf("%q", got)
	}
	if got := poolAdvice(diagnose.PoolUse{Class: "app", Library: "Tomcat"}); got != "class app; Tomcat" {
		t.Errorf("%q", got)
	}
}

// Advice stays only where the forecast's row of that pool supports it, with what the row says beside it.
func TestAdviceWithItsRow(t *testing.T) {
	for name, test := range map[string]struct {
		p99  float64
		pool string
		want string // "": no advice is left
	}{
		"supported":                 {20, "web", "web: set -T to 1; forecast of pool of 2"},
		"contradicted":              {110, "web", ""},
		"the row is of another one": {20, "gc", ""},
	} {
		f := &forecast.Forecast{Window: 10 * time.Second, Limit: 1, CPUs: 8,
			Judged: &forecast.Judged{Pool: "web", Quantile: 0.99}, Rows: []forecast.Row{
				{Remedy: forecast.Remedy{Name: forecast.None}, Judged: new(100.0),
					JudgedRange: &forecast.Range{Low: 90, High: 110}, Reserved: new(1.0)},
				{Remedy: forecast.Remedy{Name: forecast.Pools, CPUs: 2}, Judged: new(test.p99), Reserved: new(1.0)},
			}}
		f.Rows[0].Figures.Stopped, f.Rows[0].Figures.Pools = 5*time.Second, []forecast.PoolFigures{{Name: "web"}}
		pools := []diagnose.PoolUse{{Name: test.pool, Advice: "web: set -T to 1."}, {Name: "db"}}
		Check(pools, f)
		if got := pools[0].Advice; (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
		if pools[1].Advice != "" {
			t.Errorf("%s: advice for a pool that had none: %q", name, pools[1].Advice)
		}
	}
}
