package simulate

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/test/study"
)

var updatePeriods = flag.Bool("update-periods", false, "write docs/results/period.md")

// setting is a limit of the service of examples/scenarios/service-pools.yaml; period 0: it has none.
type setting struct {
	name   string
	period time.Duration
	burst  bool
}

var settings = []setting{
	{"100 ms", 100 * time.Millisecond, false}, {"burst, 100 ms", 100 * time.Millisecond, true}, {"20 ms", 20 * time.Millisecond, false},
	{"burst, 300 ms", 300 * time.Millisecond, true}, {"1 s", time.Second, false}, {"burst, 1 s", time.Second, true}, {"no limit", 0, false},
}

var perSecond = regexp.MustCompile(`per_second: (\d+)`)

// p99 simulates the service at a multiple of its load, by the rules of Linux 6.12: p99 in ms, and CPUs used.
func p99(t *testing.T, set setting, load float64, length time.Duration) (ms, cpus float64) {
	t.Helper()
	text, err := os.ReadFile("../../../examples/scenarios/service-pools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	scaled := perSecond.ReplaceAllStringFunc(string(text), func(rate string) string {
		n, _ := strconv.Atoi(strings.Fields(rate)[1])
		return fmt.Sprintf("per_second: %d", int(float64(n)*load))
	})
	scaled = strings.NewReplacer(`kernel: "4.14"`, `kernel: "6.12"`, "duration: 20s", "duration: "+length.String()).Replace(scaled)
	s, err := scenario.Parse("service-pools", []byte(scaled))
	if err != nil {
		t.Fatal(err)
	}
	limit := &s.Cgroups[0].Limit
	if set.period == 0 {
		limit.Quota = bandwidth.NoQuota
	} else {
		*limit = limit.In(set.period)
	}
	if set.burst {
		limit.Burst = limit.Quota
	}
	r, err := Run(s, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	web := r.Outcome.Workloads["web"]
	if web.P99 == nil {
		t.Fatalf("%s: no p99", set.name)
	}
	return *web.P99, r.Outcome.Cgroups["service"].UsageSeconds / r.Outcome.Seconds
}

// TestLongPeriods: where demand stays below the limit over a second, a burst in a long period comes to what no limit gives, at the same CPU
// time. With -update-periods it writes the page.
func TestLongPeriods(t *testing.T) {
	const load = 1.9
	none, used := p99(t, settings[6], load, 20*time.Second)
	quota, _ := p99(t, settings[0], load, 20*time.Second)
	long, cpus := p99(t, settings[5], load, 20*time.Second)
	if long > 1.2*none || quota < 1.5*none || cpus < 0.95*used || cpus > 1.05*used {
		t.Errorf("at %v times the load: %.0f ms without a limit, %.0f in periods of a second, %.0f of 100 ms; %.2f and %.2f CPUs", load, none, long,
			quota, used, cpus)
	}
	if !*updatePeriods {
		return
	}
	loads := []float64{1, 1.3, 1.6, 1.9, 2.1, 2.3, 2.4}
	page := "| limit |"
	for _, load := range loads {
		page += fmt.Sprintf(" %.1f |", load)
	}
	page += "\n|---|" + strings.Repeat("---|", len(loads)) + "\n"
	rows := ""
	for _, set := range settings {
		rows += "| " + set.name + " |"
		for _, load := range loads {
			ms, _ := p99(t, set, load, 30*time.Second)
			rows += fmt.Sprintf(" %.0f |", ms)
		}
		rows += "\n"
	}
	use := "| *CPUs used, no limit* |"
	for _, load := range loads {
		_, cpus := p99(t, settings[6], load, 30*time.Second)
		use += fmt.Sprintf(" %.1f |", cpus)
	}
	if err := study.WriteBetween("../../../docs/results/period.md", "periods", page+rows+use); err != nil {
		t.Fatal(err)
	}
}
