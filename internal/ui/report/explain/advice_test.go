package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

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
		f := &forecast.Forecast{Window: 10 * time.Second, Limit: 1, CPUs: 8, Judged: &forecast.Judged{Pool: "web", Quantile: 0.99}, Rows: []forecast.Row{
			{Remedy: forecast.Remedy{Name: forecast.None}, Judged: new(100.0), JudgedRange: &forecast.Range{Low: 90, High: 110}, Reserved: new(1.0)},
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
