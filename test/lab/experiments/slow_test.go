package experiments

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/suite"
)

// measured is one variant of `unthrottle demo --json`.
type measured struct {
	Periods   int     `json:"periods"`
	Throttled int     `json:"throttled_periods"`
	Used      float64 `json:"used_cpus"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
}

func (m measured) throttled() float64 { return float64(m.Throttled) / float64(max(1, m.Periods)) }

// TestSeed003InMilliseconds is seed 003 on 16 CPUs with a limit of 2: burners under a quota stop a thread that only
// wakes now and then. Published: 150 of 161 periods throttled, sleeps of 96 to 117 ms (96.7 %) and around 190 ms;
// with a cpuset of the limit 13 of 154. In a guest at the host's pace these milliseconds mean nothing.
func TestSeed003InMilliseconds(t *testing.T) {
	require.Slow(t)
	require.Root(t)
	require.CPUs(t, 8)
	require.CgroupV2(t)
	out, err := exec.Command(os.Getenv(suite.EnvBinary), "demo", "--for", "3s", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var demo struct {
		Quota   int      `json:"quota_cpus"`
		SleepMs float64  `json:"sleep_ms"`
		Before  measured `json:"before"`
		Cpuset  measured `json:"cpuset"`
		After   measured `json:"after"`
	}
	if err := json.Unmarshal(out, &demo); err != nil {
		t.Fatal(err)
	}
	t.Logf("sleeps of %.0f ms, limit %d: quota %+v, quota and cpuset %+v, pin %+v", demo.SleepMs, demo.Quota,
		demo.Before, demo.Cpuset, demo.After)
	const periodMs = 100
	if s := demo.Before.throttled(); s < 0.9 {
		t.Errorf("quota: %.2f of the periods were throttled; want 0.9", s)
	}
	if p := demo.Before.P50; p < 0.85*periodMs || p > 1.25*periodMs {
		t.Errorf("quota: half of the sleeps end within %.1f ms; want about a period", p)
	}
	if p := demo.Before.P99; p < 1.5*periodMs || p > 2.5*periodMs {
		t.Errorf("quota: p99 of the sleeps is %.1f ms; want about two periods", p)
	}
	if s := demo.Cpuset.throttled(); s > 0.5 {
		t.Errorf("quota and cpuset: %.2f of the periods were throttled; want less than half", s)
	}
	if p := demo.After.P99; p > 0.3*demo.Before.P99 {
		t.Errorf("pin: p99 of the sleeps is %.1f ms; the quota's is %.1f", p, demo.Before.P99)
	}
	for name, m := range map[string]measured{"quota": demo.Before, "cpuset": demo.Cpuset, "pin": demo.After} {
		if limit := float64(demo.Quota); m.Used < 0.85*limit || m.Used > 1.1*limit {
			t.Errorf("%s: %.2f CPUs used of %d", name, m.Used, demo.Quota)
		}
	}
}
