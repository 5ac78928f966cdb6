package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// What narrow and period make of a limit of half a CPU, and of whole ones.
func TestNarrowAndPeriod(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		quota, remedy string
		limit         bandwidth.Limit
		width         int
		credit        time.Duration
		refused       string
	}{
		{"50ms", "{kind: narrow}", bandwidth.Limit{Quota: 5 * ms, Period: 10 * ms}, 1, 0, ""},
		{"5ms", "{kind: narrow}", bandwidth.Limit{Quota: ms, Period: 20 * ms}, 1, 0, ""},
		{"200ms", "{kind: narrow}", bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * ms}, 2, 0, ""},
		{"200ms", "{kind: narrow, credit: 30ms}", bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * ms}, 2, 30 * ms, ""},
		{"250ms", "{kind: narrow, credit: 30ms}", bandwidth.Limit{}, 0, 0, "needs a limit of whole CPUs"},
		{"50ms", "{kind: period, period: 20ms}", bandwidth.Limit{Quota: 10 * ms, Period: 20 * ms, Burst: 4 * ms}, 0, 0, ""},
		{"50ms", "{kind: period, period: 1ms}", bandwidth.Limit{}, 0, 0, "the kernel takes 1ms or more"},
		{"50ms", "{kind: period}", bandwidth.Limit{}, 0, 0, "period is missing"},
		{"50ms", "{kind: period, period: 2s}", bandwidth.Limit{}, 0, 0, "1ms to 1s"},
		{"50ms", "{kind: raise, factor: 2, credit: 1ms}", bandwidth.Limit{}, 0, 0, "does not have this"},
	} {
		burst := "20ms"
		if test.quota == "5ms" {
			burst = "5ms"
		}
		text := strings.NewReplacer("quota: 50ms", "quota: "+test.quota, "burst: 20ms", "burst: "+burst, "parent: pod", "remedy: "+test.remedy).Replace(good)
		s, err := Parse("x", []byte(text))
		if test.refused != "" {
			if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%s: %v", test.remedy, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.remedy, err)
			continue
		}
		r, refused := s.Remedied()
		if refused != nil {
			t.Fatal(refused)
		}
		for _, c := range r.Cgroups {
			if c.Name == "app" && (c.Limit != test.limit || c.Width != test.width || c.Credit != test.credit) {
				t.Errorf("%s of %s: %+v", test.remedy, test.quota, c)
			}
		}
	}
	nested := strings.Replace(good, "cpus: 0-2}", "remedy: {kind: narrow}}", 1)
	if _, err := Parse("x", []byte(nested)); err == nil || !strings.Contains(err.Error(), "app below it has a limit of its own") {
		t.Errorf("%v", err)
	}
}
