package inside

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/inside"
)

func TestWrite(t *testing.T) {
	yes, no := true, false
	trial := inside.Trial{CPUs: 2, End: time.Second}
	for name, c := range map[string]struct {
		f          inside.Finding
		w          inside.Watch
		says, json string
	}{
		"limited": {inside.Finding{Limited: &yes, Period: 100 * time.Millisecond, Quota: 50 * time.Millisecond},
			inside.Watch{Start: time.Second, End: 10 * time.Second, Interval: 2 * time.Millisecond, Spent: 90 * time.Millisecond},
			"limit      0.5 CPUs: a quota of 50.0 ms in each period of 100 ms\nstops      none in 9 s\ncost       2.0 % of the limit\n",
			`"limited":true,"period_ms":100,"quota_ms":50,"limit_cpus":0.5,"stops":0,"stopped_seconds":0,"longest_stop_ms":0,"window_seconds":9,`},
		"not limited": {inside.Finding{Limited: &no}, inside.Watch{}, "limit      none with a period up to 250 ms: for 1 s its threads",
			`"limited":false,"period_ms":null,"quota_ms":null,"limit_cpus":null,"stops":0,`},
		"not known": {inside.Finding{Why: "other work"}, inside.Watch{}, "limit      not known: other work\n",
			`"limited":null,"period_ms":null,"quota_ms":null,"limit_cpus":null,"stops":null,"stopped_seconds":null,"longest_stop_ms":null,"window_seconds":0,`},
		"no watch": {inside.Finding{Limited: &yes, Period: 100 * time.Millisecond, Quota: 50 * time.Millisecond}, inside.Watch{},
			"stops      not measured", `"stops":null`},
	} {
		d := New(c.f, trial, c.w, 0)
		var b strings.Builder
		if err := Write(&b, d); err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(d)
		if err != nil || !strings.Contains(string(written), c.json) {
			t.Errorf("%s: %s, %v", name, written, err)
		}
		if !strings.Contains(b.String(), c.says) {
			t.Errorf("%s: %q", name, b.String())
		}
	}
	stopped := Document{Limited: &yes, PeriodMS: number(100, 0), QuotaMS: number(20, 0), LimitCPUs: number(0.2, 1),
		Stops: new(int), StoppedSeconds: number(7.2, 1),
		LongestStopMS: number(92, 0), WindowSeconds: 9, SpentShare: number(0.03, 2)}
	*stopped.Stops = 88
	stopped.BusiestPID = new(7)
	var b strings.Builder
	if err := Write(&b, stopped); err != nil || !strings.Contains(b.String(), "in 88 of 90 periods; stopped for 7.20 "+
		"s of 9 s, the longest for 92.0 ms") ||
		!strings.Contains(b.String(), "\nwho        is told by 'unthrottle look 7': ") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
