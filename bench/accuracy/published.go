package accuracy

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
	"github.com/unthrottle/unthrottle/test/study"
)

// Published holds the simulator against figures that others have published.
type Published struct {
	// Read gives the text of examples/scenarios/NAME.yaml.
	Read func(name string) (string, error)
	// Run simulates; times, unless nil, gets each time that the outcome's quantiles are made of, and its workload.
	Run func(s scenario.Scenario, seed uint64, times func(workload string, took time.Duration)) (scenario.Outcome, error)
	// Seeds is how many runs a figure is the median of.
	Seeds int
	// Real are runs of the scenario conceptual on a real kernel.
	Real ForReal
}

// ForReal are runs of a scenario on a real kernel.
type ForReal struct {
	Machine agreement.Machine  `json:"machine"`
	Release string             `json:"release"` // of the kernel
	At      time.Time          `json:"at"`
	Runs    []scenario.Outcome `json:"runs"`
}

// Claim is one published figure, and what the simulator makes of it.
type Claim struct {
	Of, Bound, Came string
	Met             bool
	Why             string // it was missed; "": it was not, or the cause is unknown
	// Unjudged is why no outcome could miss it, so that it is neither met nor missed; "": one could.
	Unjudged string
}

// Verdict is the last cell of the claim's row.
func (c Claim) Verdict() string {
	switch {
	case c.Unjudged != "":
		return c.Unjudged
	case c.Met:
		return "met"
	case c.Why != "":
		return "**missed**: " + c.Why
	}
	return "**missed**"
}

//go:embed published.md
var publishedText string

// PublishedSection is the page's part of these claims, figures of which are medians of so many seeds.
func PublishedSection(claims []Claim, seeds int) string {
	return study.Fill(publishedText, nil, struct {
		Claims []Claim
		Seeds  int
	}{claims, seeds})
}

// claims are a Published under way: the first error ends it.
type claims struct {
	Published
	err error
	all []Claim
}

// Claims are all of them, from Indeed's "Unthrottled: Fixing CPU Limits in the Cloud", Uber's cgroup-lat, and Mackey's
// and Luu's "The container throttling problem".
func (p Published) Claims() ([]Claim, error) {
	c := &claims{Published: p}
	c.conceptual()
	c.fibtest()
	c.lat()
	c.pools()
	return c.all, c.err
}

// told is a figure that nothing is held against.
func (c *claims) told(of, bound, why, came string, args ...any) {
	c.claim(of, bound, false, came, args...).Unjudged = why
}

func (c *claims) claim(of, bound string, met bool, came string, args ...any) *Claim {
	c.all = append(c.all, Claim{Of: of, Bound: bound, Came: fmt.Sprintf(came, args...), Met: met})
	return &c.all[len(c.all)-1]
}

// parse reads a scenario with some of its text replaced.
func (c *claims) parse(name string, replace ...string) (s scenario.Scenario) {
	if c.err != nil {
		return s
	}
	text, err := c.Read(name)
	for i := 0; i < len(replace) && err == nil; i += 2 {
		if !strings.Contains(text, replace[i]) {
			err = fmt.Errorf("scenario %s has no %q any longer", name, replace[i])
		}
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	if err == nil {
		s, err = scenario.Parse(name+".yaml", []byte(text))
	}
	c.err = err
	return s
}

func (c *claims) run(s scenario.Scenario, seed uint64, times func(string, time.Duration)) (o scenario.Outcome) {
	if c.err == nil {
		o, c.err = c.Run(s, seed, times)
	}
	return o
}

// span is a figure over all seeds: lowest, median, highest.
type span struct{ low, median, high float64 }

// spanOf is a figure over runs; none: all 0.
func spanOf(runs []scenario.Outcome, figure func(scenario.Outcome) float64) span {
	if len(runs) == 0 {
		return span{}
	}
	var all []float64
	for _, o := range runs {
		all = append(all, figure(o))
	}
	slices.Sort(all)
	return span{all[0], all[(len(all)-1)/2], all[len(all)-1]}
}

func (s span) text(unit string) string {
	return fmt.Sprintf("%.4g%s (%.4g to %.4g)", s.median, unit, s.low, s.high)
}

// runs are those of all seeds; none after an error.
func (c *claims) runs(s scenario.Scenario, times func(string, time.Duration)) (outcomes []scenario.Outcome) {
	for seed := range uint64(c.Seeds) {
		outcomes = append(outcomes, c.run(s, seed+1, times))
	}
	if c.err != nil {
		return nil
	}
	return outcomes
}

// conceptual is the request of 200 ms under 0.4 CPUs.
func (c *claims) conceptual() {
	o := c.run(c.parse("conceptual"), 1, nil)
	if c.err != nil {
		return
	}
	app, request := o.Cgroups["app"], o.Workloads["request"]
	c.claim("0.4 CPUs, a request of 200 ms at a period's beginning, charged continuously",
		"440 ms, 4 throttled, 240 ms, 80 % of 5 periods with something to run",
		*request.Max == 440 && app.ThrottledPeriods == 4 && app.ThrottledSeconds == 0.24 && *app.ActivePeriods == 5,
		"%g ms, %d throttled, %g ms, %.0f %% of %d (the kernel's own count of periods: %d)", *request.Max,
		app.ThrottledPeriods, 1000*app.ThrottledSeconds,
		100*float64(app.ThrottledPeriods)/float64(*app.ActivePeriods), *app.ActivePeriods, app.Periods)
	longest := func(o scenario.Outcome) float64 { return *o.Workloads["request"].Max }
	for _, hz := range []int{100, 250, 1000} {
		tick := 1000 / float64(hz)
		at := spanOf(c.runs(c.parse("conceptual", "continuous", fmt.Sprint(hz)), nil), longest)
		c.claim(fmt.Sprintf("the same, charged by a tick at %d Hz", hz), "a tick below 440 ms at most",
			at.low >= 440-tick && at.high <= 440, "%s", at.text(" ms"))
	}
	// A request that comes with x ms of its period left, above 40, gets 40 ms at once and the other 160 in four periods, the last of which
	// ends after 40: x + 340. With less it gets x at once, and what is left of the first 40 ms after four periods: 440.
	took := spanOf(c.Real.Runs, longest)
	throttled := spanOf(c.Real.Runs, func(o scenario.Outcome) float64 { return float64(o.Cgroups["app"].ThrottledPeriods) })
	stopped := spanOf(c.Real.Runs, func(o scenario.Outcome) float64 { return 1000 * o.Cgroups["app"].ThrottledSeconds })
	c.claim(fmt.Sprintf("the same request for real, begun at any moment of a period: %d runs on Linux %s at %d Hz", len(c.Real.Runs), c.Real.Release,
		c.Real.Machine.HZ), "380 to 440 ms within 2 %, 3 or 4 throttled",
		took.low >= 0.98*380 && took.high <= 1.02*440 && throttled.low >= 3 && throttled.high <= 4,
		"%s, %s throttled, %s", took.text(" ms"), throttled.text(""), stopped.text(" ms"))
}

// fibtest is a CPU of burning beside 63 threads that hardly do anything, in ms of CPU.
func (c *claims) fibtest() {
	usage := func(o scenario.Outcome) float64 { return 1000 * o.Cgroups["fibtest"].UsageSeconds }
	for _, f := range []struct {
		of        string
		s         scenario.Scenario
		published float64
	}{
		{"fibtest, 64 CPUs, since 5.4", c.parse("fibtest-fixed"), 493},
		{"fibtest, 1 thread, 64 CPUs", c.parse("fibtest-fixed", "threads: 64", "threads: 1"), 501},
		{"fibtest, 1 thread, 8 CPUs, 4.18 to 5.3", c.parse("fibtest-affected", "threads: 64", "threads: 1", "cpus: 64",
			"cpus: 8", "5.8s", "5.1s"), 507},
	} {
		at := spanOf(c.runs(f.s, nil), usage)
		c.claim(f.of, fmt.Sprintf("%g ms within 5 %%", f.published), math.Abs(at.median/f.published-1) <= 0.05, "%s", at.text(" ms"))
	}
	for _, f := range []struct {
		of, name  string
		replace   []string
		published float64
	}{
		{"fibtest, 64 CPUs, 4.18 to 5.3", "fibtest-affected", nil, 88},
		{"fibtest, 8 CPUs, 4.18 to 5.3", "fibtest-affected",
			[]string{"cpus: 64", "cpus: 8", "threads: 64", "threads: 8", "5.8s", "5.2s"}, 380},
	} {
		var parts []string
		for _, hz := range []string{"100", "250", "1000"} {
			at := spanOf(c.runs(c.parse(f.name, append([]string{"hz: 250", "hz: " + hz}, f.replace...)...), nil), usage)
			parts = append(parts, at.text(" ms")+" at "+hz+" Hz")
		}
		c.told(f.of, fmt.Sprintf("%g ms published", f.published), "not testable: what expires depends on the tick and on the phase, and the "+
			"published machine's are not known", "%s", strings.Join(parts, ", "))
	}
}

// lat is 32 burners and a thread that sleeps 10 ms, under 2 CPUs.
func (c *claims) lat() {
	throttled := func(o scenario.Outcome) float64 {
		return 100 * float64(o.Cgroups["lat"].ThrottledPeriods) / float64(o.Cgroups["lat"].Periods)
	}
	for _, f := range []struct {
		cpus  string
		sleep bool // whether sleeps are to take a period
	}{{"16", false}, {"32", true}, {"64", true}} {
		s := c.parse("cgroup-lat-quota", "cpus: 32", "cpus: "+f.cpus)
		all, long := 0, 0
		modes := map[int]int{} // sleeps by tens of ms
		at := spanOf(c.runs(s, func(workload string, took time.Duration) {
			if workload != "sleeper" {
				return
			}
			all++
			if took >= 90*time.Millisecond && took <= 120*time.Millisecond {
				long++
			}
			modes[int(took/(10*time.Millisecond))*10]++
		}), throttled)
		c.claim("32 burners and a sleeper, 2 CPUs of quota, "+f.cpus+" CPUs: throttled periods", "93 % at least",
			at.median >= 93, "%s", at.text(" %"))
		share := 100 * float64(long) / float64(max(1, all))
		of := "its sleeps of 90 to 120 ms, " + f.cpus + " CPUs"
		if !f.sleep {
			c.told(of, "no bound: two modes", notJudged, "%.0f %% (%s)", share, modesText(modes, all))
			continue
		}
		sleeps := c.claim(of, "90 % at least", share >= 90, "%.0f %% (%s)", share, modesText(modes, all))
		if !sleeps.Met {
			sleeps.Why = "in half of the runs the sleeper has a CPU of its own, and lives off the 1 ms of quota that " +
				"it keeps there; a Go program's sleeper takes turns with its burners"
		}
	}
	runs := c.runs(c.parse("cgroup-lat-cpuset"), nil)
	at, long := spanOf(runs, throttled), spanOf(runs, func(o scenario.Outcome) float64 { return *o.Workloads["sleeper"].P99 })
	c.claim("the same on a cpuset of 2 CPUs, quota kept: throttled periods", "15 % at most (published: 13 of 154)",
		at.median <= 15, "%s", at.text(" %"))
	c.claim("its sleeps: p99", "that mode gone", long.median < 90, "%s", long.text(" ms"))
}

// notJudged is the verdict of a figure without a bound.
const notJudged = "not judged"

// modesText is where most sleeps lie.
func modesText(modes map[int]int, all int) string {
	var parts []string
	for ms := 0; ms < 1000; ms += 10 {
		if share := float64(modes[ms]) / float64(max(1, all)); share >= 0.05 {
			parts = append(parts, fmt.Sprintf("%.0f %% at %d ms", 100*share, ms))
		}
	}
	return strings.Join(parts, ", ")
}

// pools is the service with competing pools, its objective 99 of 100 gets within 20 ms and nothing failed.
func (c *claims) pools() {
	resized := []string{
		"http: {threads: {per_host_cpu: 2}}", "http: {threads: 12}",
		"offload: {threads: {per_host_cpu: 2}}", "offload: {threads: 8}",
		"eventbus: {threads: {per_host_cpu: 2}}", "eventbus: {threads: 4}",
	}
	// figures at a load: mean use as a share of the quota, p90 of gets, and whether the objective is kept.
	figures := func(factor float64, replace ...string) (use, p90 float64, holds bool) {
		s := c.parse("service-pools", replace...)
		if c.err != nil {
			return 0, 0, false
		}
		s.Duration *= 2 // bursts are few
		for i := range s.Workloads[0].Server.Classes {
			s.Workloads[0].Server.Classes[i].Arrivals.PerSecond *= factor
		}
		runs := c.runs(s, nil)
		if c.err != nil {
			return 0, 0, false
		}
		o := scenario.Quantile(runs, 0.5)
		web := o.Workloads["web"]
		return o.Cgroups["service"].UsageSeconds / o.Seconds / 20, *web.Classes["get"].P90,
			*web.Classes["get"].P99 <= 20 && *web.Failed == 0
	}
	// knee is the least load, in steps of 5 %, that misses the objective, and the mean use there.
	knee := func(from float64, replace ...string) (factor, use float64) {
		for factor = from; factor < 3 && c.err == nil; factor += 0.05 {
			if at, _, holds := figures(factor, replace...); !holds {
				return factor, at
			}
		}
		return factor, math.NaN()
	}
	missed, use := knee(0.7)
	c.claim("competing pools of two threads per CPU, 20 CPUs: mean use when the objective is first missed",
		"35 to 50 % of the quota", use >= 0.35 && use <= 0.5, "%.0f %%", 100*use)
	later, _ := knee(1.2, resized...)
	c.claim("the load that smaller pools hold", "1.6 to 2 times", later/missed >= 1.6 && later/missed <= 2, "%.2f times", later/missed)
	_, old, _ := figures(1)
	_, small, _ := figures(1, resized...)
	gain := 1 - small/old
	c.claim("latency (p90 of gets) with smaller pools at the old load", "about 20 % less", gain >= 0.12 && gain <= 0.28,
		"%.0f %% less", 100*gain)
	var needed []string
	for _, without := range []struct {
		name    string
		replace []string
	}{
		{"bursts", []string{", burst: 50", "", ", burst: 100", ""}},
		{"the limit", []string{"quota: 2s", "quota: 4.8s"}},
		{"shared data and locks", []string{", touches: 100, locked: 0.001", "", ", touches: 500", ""}},
	} {
		verdict := "kept"
		if _, _, holds := figures(missed, without.replace...); !holds {
			verdict = "missed"
		}
		needed = append(needed, "without "+without.name+" "+verdict)
	}
	c.told("which ingredients that needs: the objective at that load", "no bound", notJudged, "%s", strings.Join(needed, ", "))
}
