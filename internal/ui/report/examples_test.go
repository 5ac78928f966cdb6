package report

import (
	"errors"
	"fmt"
	"io"
	"testing/fstest"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	curefix "github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	benchdemo "github.com/unthrottle/unthrottle/internal/experiment/demo"
	"github.com/unthrottle/unthrottle/internal/experiment/fibtest"
	"github.com/unthrottle/unthrottle/internal/experiment/latency"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/ui/report/bench"
	"github.com/unthrottle/unthrottle/internal/ui/report/check"
	"github.com/unthrottle/unthrottle/internal/ui/report/defrag"
	"github.com/unthrottle/unthrottle/internal/ui/report/demo"
	"github.com/unthrottle/unthrottle/internal/ui/report/explain"
	"github.com/unthrottle/unthrottle/internal/ui/report/fix"
	"github.com/unthrottle/unthrottle/internal/ui/report/fleet"
	forecastview "github.com/unthrottle/unthrottle/internal/ui/report/forecast"
	"github.com/unthrottle/unthrottle/internal/ui/report/ls"
	policyview "github.com/unthrottle/unthrottle/internal/ui/report/policy"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/changes"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/scenariorun"
	"github.com/unthrottle/unthrottle/internal/ui/report/simulate"
	"github.com/unthrottle/unthrottle/internal/ui/report/status"
	topologyview "github.com/unthrottle/unthrottle/internal/ui/report/topology"
	"github.com/unthrottle/unthrottle/topology"
)

// view writes an example of what a command shows.
type view func(io.Writer, page.Style) error

// examples are the views with values as they come, with long names where strangers choose them.
func examples() map[string]view {
	f, c := forecasts()
	return map[string]view{
		"ls": func(w io.Writer, s page.Style) error {
			return ls.Write(w, observations(), ls.Options{Width: s.Width, ASCII: s.ASCII, Color: s.Color})
		},
		"ls-wide": func(w io.Writer, s page.Style) error {
			return ls.Write(w, observations(), ls.Options{Wide: true, Width: s.Width, ASCII: s.ASCII, Color: s.Color})
		},
		"forecast": func(w io.Writer, s page.Style) error {
			return forecastview.Write(w, f, c, forecastview.Options{Pools: true}, s)
		},
		"forecast-all": func(w io.Writer, s page.Style) error {
			return forecastview.WriteAll(w,
				&forecastview.All{All: []*forecast.Forecast{f}, Choices: []policy.Choice{*c},
					NotForecast: []string{"shop/db: it has no limit"}}, s)
		},
		"fix-found": func(w io.Writer, s page.Style) error {
			return errors.Join(fix.Cause(w, *explanation(), s),
				fix.Found(w, policy.Proposal{Choice: c, Known: &policy.Known{Forecast: f, Explanation: explanation()}}, s))
		},
		"fix-without-a-forecast": func(w io.Writer, s page.Style) error {
			return fix.Found(w, policy.Proposal{Plan: &remedy.Plan{Remedy: remedy.Burst},
				Why: "it uses 0.35 CPUs of its limit of 0.6 CPUs on average, in bursts",
				Not: []policy.Rejected{{Remedy: remedy.Pin, Why: "it grants more CPU than the limit, which was not asked for"}}}, s)
		},
		"fix-better": func(w io.Writer, s page.Style) error {
			look := fix.Looking{CPUSeconds: 1.9, LoadingSeconds: 0.45, ForecastingSeconds: 1.1, CPUs: 1, GaveWay: true}
			return fix.Write(w, fixed(), &look, s)
		},
		"plan":         func(w io.Writer, s page.Style) error { return changes.Plan(w, applied(), s) },
		"applied":      func(w io.Writer, s page.Style) error { return changes.Done(w, applied(), s) },
		"status":       func(w io.Writer, s page.Style) error { return status.Write(w, inForce(), drift(), now, s) },
		"status-empty": func(w io.Writer, s page.Style) error { return status.Write(w, nil, nil, now, s) },
		"history": func(w io.Writer, s page.Style) error {
			return status.History(w, []txn.Past{{InForce: inForce()[0], Until: now, Reason: "restored"}}, now, s)
		},
		"lends": func(w io.Writer, s page.Style) error {
			return status.Lends(w, []remedy.Sharing{
				{Target: "/web", CPUs: cpuset.New(2, 3), To: []string{"/batch/reports-of-the-night", "/batch/index"}}}, nil, s)
		},
		"policy": func(w io.Writer, s page.Style) error { return policyview.All(w, policies(), s) },
		"policy-one": func(w io.Writer, s page.Style) error {
			return policyview.Container(w, "/etc/unthrottle.yaml", policies()[0], s)
		},
		"check":  func(w io.Writer, s page.Style) error { return check.Write(w, host(), s) },
		"defrag": func(w io.Writer, s page.Style) error { return defrag.Write(w, repaired(), s) },
		"explain": func(w io.Writer, s page.Style) error {
			return explain.Write(w, *explanation(), explain.Options{Style: s, Recommended: c})
		},
		"fleet":   func(w io.Writer, s page.Style) error { return fleet.Write(w, manyHosts(), s) },
		"run":     func(w io.Writer, s page.Style) error { return simulate.WriteReal(w, ran(), s) },
		"demo":    func(w io.Writer, s page.Style) error { return demo.Write(w, demonstrated(), s) },
		"latency": func(w io.Writer, s page.Style) error { return bench.Latency(w, slept(), s) },
		"fibtest": func(w io.Writer, s page.Style) error {
			return bench.Fibtest(w, fibtest.Result{Verdict: "fixed", Why: "the slow threads use their quota",
				Kernel: "6.18.44", HZ: 250, Mode: "v1", CPUs: 2,
				Seconds: 5, Repeat: 3, Runs: []fibtest.Run{
					{Threads: 4, Fast: 1, Slow: 3, QuotaSeconds: 0.02, Iterations: 900e6, Periods: 50,
						ThrottledPeriods: 14, UsageSeconds: 0.9,
						Share: 0.98, Lowest: 0.97, Highest: 0.99, Affected: fibtest.Range{Low: 0.3, High: 0.5},
						Fixed: fibtest.Range{Low: 0.95, High: 1}}}}, s)
		},
		"topology": func(w io.Writer, s page.Style) error {
			return topologyview.Write(w, machine(), topologyview.Options{Width: s.Width, ASCII: s.ASCII, Color: s.Color})
		},
	}
}

var now = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

func observations() []observe.Observation {
	observation := func(name string, limit, used, low, high float64) observe.Observation {
		o := observe.Observation{
			Container: container.Container{Name: name, Pod: "cart-7d9f8b6c5-x2x4z", Namespace: "shop",
				Group: cgroup.Group{Path: "/kubepods.slice/kubepods-burstable.slice/" + name}},
			Window: time.Second, LimitCPUs: &limit, UsedCPUs: &used, CPUsAllowed: cpuset.New(0, 1, 2, 3), ThrottledBy: observe.BySelf,
			Periods: new(uint64(10)), ThrottledPeriods: new(uint64(4)), ThrottledSeconds: &high,
			Levels: []cgroup.Level{{Limit: cgroup.Limit{Quota: 50 * time.Millisecond, Period: 100 * time.Millisecond}}},
		}
		from, to := time.Duration(low*float64(time.Second)), time.Duration(high*float64(time.Second))
		o.StoppedLow, o.StoppedHigh = &from, &to
		return o
	}
	dark := observe.Observation{Container: container.Container{Name: "dark", Group: cgroup.Group{Path: "/dark"}},
		NotMeasured: []string{"cpu.stat of /dark: permission denied"}}
	parent := observation("index", 0.3, 0.3, 0.828, 1)
	parent.ThrottledBy = "/kubepods.slice/kubepods-burstable.slice"
	return []observe.Observation{observation("checkout-of-the-web-shop-with-a-long-name", 0.5, 0.5, 0.735, 1), parent,
		observation("café", 0.5, 0.02, 0, 0.004), observation("near", 1, 0.9, 0.02, 0.03), dark}
}

// forecasts are a forecast with two loads of the host, and what it recommends.
func forecasts() (*forecast.Forecast, *policy.Choice) {
	row := func(r forecast.Remedy, load, p99, stopped float64, price string) forecast.Row {
		q := forecast.Quantiles{Count: 160, P50: new(p99 / 2), P99: &p99, Max: new(p99 * 1.1)}
		return forecast.Row{Remedy: r, HostLoad: load, Judged: &p99,
			JudgedRange: &forecast.Range{Low: 0.9 * p99, High: 1.2 * p99}, Reserved: new(0.6), Price: price,
			Figures: forecast.Figures{ThrottledPeriods: 40 * stopped,
				Stopped: time.Duration(2 * stopped * float64(time.Second)), Response: q,
				Pools: []forecast.PoolFigures{{Name: "http-worker-*", Process: "java", Delay: q, Response: q}}},
			Neighbours: &forecast.Neighbours{Lost: 10 * time.Millisecond}}
	}
	none, pin := forecast.Remedy{Name: forecast.None}, forecast.Remedy{Name: forecast.Pin, CPUs: 1}
	burst := forecast.Remedy{Name: forecast.Burst, Burst: 12 * time.Millisecond, Period: 20 * time.Millisecond}
	f := &forecast.Forecast{Target: "shop/cart", Kernel: "6.18.44", Window: 2 * time.Second, Limit: 0.6, CPUs: 2,
		Cheapest: 1, SmallestLimit: new(0.4), SmallestRange: &forecast.Range{Low: 0.35, High: 0.4},
		Judged: &forecast.Judged{Quantile: 0.99},
		Rows: []forecast.Row{
			row(none, 0, 112, 0.172, "nothing"), row(burst, 0, 48.5, 0.02, "up to 2 CPUs at once from others, from earlier unused quota"),
			row(pin, 0, 80.2, 0, "1 CPU that no other container gets, 0.33 used"),
			row(forecast.Remedy{Name: forecast.Pools, CPUs: 1}, 0, 120, 0.05, ""),
			{Remedy: forecast.Remedy{Name: forecast.Narrow}, Refused: "the kernel has no sched_ext"},
			row(none, 0.9, 180, 0.2, "nothing"), row(burst, 0.9, 90, 0.1, ""), row(pin, 0.9, 80.2, 0, ""),
		}, Notes: []string{"the recording is of 2 s only"}}
	return f, &policy.Choice{Answer: policy.AnswerRemedy, Row: 1, Why: "p99 of pool http-worker-* from 112 ms to 48.5 ms (44.3 to 53.6 ms)",
		Not: []policy.NotChosen{{Row: 0, Why: "another is better"}, {Row: 2, Why: "more CPU than the limit, not asked for (--may pin)"}}}
}

func explanation() *diagnose.Explanation {
	const ms = time.Millisecond
	cells := make([]diagnose.Cell, 50)
	for i := range cells {
		if cells[i] = (diagnose.Cell{Stopped: 1}); i < 15 {
			cells[i] = diagnose.Cell{MeanWidth: 1.5, MostWidth: 2}
		}
	}
	return &diagnose.Explanation{
		Target: "shop/cart", Start: now, Window: 2 * time.Second, Cause: diagnose.Burst, LimitCPUs: new(0.6), MeanWidth: new(0.35),
		Verdict: "8 threads of pool http-worker-* ran 2 wide and spent the 60 ms quota in 33 ms; then the container " +
			"was stopped for 42 ms, 4.0 times a second.",
		Causes: []diagnose.RankedCause{
			{Cause: diagnose.Burst, Stopped: new(339 * ms), Evidence: "mean use is 0.35 CPUs of the limit of 0.6 " +
				"CPUs (58 %), up to 2 at once"}},
		Periods: new(uint64(20)), ThrottledPeriods: new(uint64(8)), Stopped: new(339 * ms), StoppedIntervals: new(8),
		Width:    []diagnose.Bar{{CPUs: 0, Time: 1500 * ms}, {CPUs: 2, Time: 500 * ms}},
		Wanted:   []diagnose.Bar{{CPUs: 0, Time: 1300 * ms}, {CPUs: 8, Time: 700 * ms}},
		Timeline: []diagnose.Row{{Start: 0, Length: 100 * ms, Throttled: true, Cells: cells}},
		Pools: []diagnose.PoolUse{{Name: "http-worker-*", Process: "java", Threads: 8, CPU: 700 * ms,
			CPUThrottled: new(500 * ms), Widest: 2,
			Delay:    &diagnose.Quantiles{Count: 160, P50: ms, P99: 42 * ms, Max: 50 * ms},
			Response: &diagnose.Quantiles{Count: 160, P50: 30 * ms, P99: 112 * ms, Max: 118 * ms},
			Waiting:  map[diagnose.Reason]time.Duration{diagnose.OwnQuota: 2500 * ms, diagnose.OwnThreads: 900 * ms}}},
		Waiting:     map[diagnose.Reason]time.Duration{diagnose.OwnQuota: 2500 * ms, diagnose.OwnThreads: 900 * ms},
		NotMeasured: []string{"steal: /proc/stat has none"},
	}
}

func applied() apply.Result {
	return apply.Result{ID: "20261123-034721-7d9ba1", Verdict: "unverified",
		Warnings: []string{"CPU 1 is not exclusive: other cgroups may run there too, and they lie outside the scope"},
		Writes: []apply.Write{{Path: "/kubepods.slice/kubepods-burstable.slice/checkout-of-the-web-shop",
			File: "cpu.cfs_burst_us", Before: "0", After: "50000", Kind: change.KindFile,
			Why: "unused quota of earlier periods may be spent later", Done: true}},
		Skipped: []txn.Skip{{Path: "/batch", File: "cpuset.cpus", Why: "another program set it to 0-3 meanwhile"}}}
}

func fixed() curefix.Result {
	r := curefix.Result{Result: applied(), Kept: true,
		Before: &txn.Figures{StoppedPerSecondLow: new(0.107), StoppedPerSecondHigh: new(0.214), UsedCPUs: new(0.32)},
		After:  &txn.Figures{StoppedPerSecondLow: new(0.0), StoppedPerSecondHigh: new(0.0), UsedCPUs: new(0.32)}, ObjectiveMet: new(true),
		Judgement: &verdict.Judgement{Before: new(verdict.Spread{}), Verdict: verdict.Better,
			Why: "p95 from 114.6 ms (113.4 to 118.6) to 49.93 ms (48.37 to 50.71), longest from 118.8 ms to 50.9 ms"}}
	r.Verdict = verdict.Better
	return r
}

func inForce() []txn.InForce {
	stopped := &txn.Figures{StoppedPerSecondLow: new(0.1), StoppedPerSecondHigh: new(0.2)}
	return []txn.InForce{{ID: "7", Target: "/shop/cart", Name: "shop/cart", Remedy: "burst",
		Since: now.Add(-125 * time.Minute), By: "unthrottle fix, user root for someone", Verdict: "better",
		Expected: &txn.Expected{StoppedPerSecondLow: new(0.0), StoppedPerSecondHigh: new(0.02)}, Outcome: &txn.Outcome{Before: stopped}}}
}

func drift() []txn.DriftItem {
	return []txn.DriftItem{{Path: "/shop/cart", File: "cpu.cfs_quota_us", Want: "-1", Current: "60000"}}
}

func host() features.Report {
	return features.Report{CgroupMode: "v1",
		Controllers: []features.Controller{
			{Name: cgroup.CPU, Version: 1, Dir: "/sys/fs/cgroup/cpu", Writable: true, CanMakeCgroups: true}}, CPUs: 2,
		Kernel: features.Kernel{TunablesRead: features.Yes,
			Unusual: []features.Tunable{{Name: "migration_cost_ns", Value: 5_000_000, Usual: 500_000, Unit: "ns",
				Means: "an idle CPU leaves threads waiting at a busy one for longer"}}},
		Can: []features.Ability{{What: "pin", Can: true, Why: "cpuset is writable, and there are CPUs of which some can be exclusive"},
			{What: "narrow", Why: "the kernel has no sched_ext (from 6.12 on, with CONFIG_SCHED_CLASS_EXT)"}}}
}

func repaired() defrag.Repair { return defrag.Repair{LeftAlone: nil, Planned: true} }

func ran() scenariorun.Run {
	r := scenariorun.Run{Scenario: "service-pools.yaml", About: "a service with two pools", Kernel: "6.18.44",
		Mode: new("v1"), CPUs: 2, Seed: 1}
	r.Summarize([]scenario.Outcome{{Seconds: 5,
		Cgroups: map[string]scenario.CgroupOutcome{
			"service": {Periods: 50, ThrottledPeriods: 14, ThrottledSeconds: 0.7, UsageSeconds: 2.4,
				Width: []scenario.Width{{CPUs: 2, Seconds: 1}}}},
		Workloads: map[string]scenario.WorkloadOutcome{
			"requests": {Latencies: scenario.Latencies{Count: 900, P50: new(1.2), P90: new(4.0), P99: new(31.4),
				Max: new(140.0)}, Failed: new(uint64(1)), CPUSeconds: new(2.4)}}}})
	return r
}

func demonstrated() benchdemo.Result {
	bins := []benchdemo.Bin{{FromMs: 10, ToMs: 20, Count: 150}, {FromMs: 20, ToMs: 100, Count: 7}, {FromMs: 100, ToMs: 200, Count: 40}}
	v := benchdemo.Variant{Name: "quota", Burners: 32, CPUs: "0-1", Periods: new(uint64(65)),
		ThrottledPeriods: new(uint64(65)), UsedCPUs: new(1.0), P50: new(11.6), P99: new(159.7), Max: new(184.0), Histogram: bins}
	return benchdemo.Result{Kernel: "6.18.44", CPUs: 2, Cgroups: "v1", Quota: 1, Period: 0.1, Burners: 32, Sleep: 10,
		Pinned: "0", Before: v, Threads: v, CPUSet: v, After: v,
		Verdict: benchdemo.Verdict{Text: []string{"With pin, p99 of the 10 ms sleep is 14.1 ms instead of 159.7 ms: " +
			"11.3x lower."}}, Restored: true}
}

func slept() latency.Result {
	return latency.Result{Kernel: "6.18.44", Mode: "v1", CPUs: 2, Limit: 1, Burners: 32, SleepMs: 10, Seconds: 5,
		Repeat: 3, Notes: []string{"3 rounds only"},
		Remedies: []latency.Row{{Remedy: "quota", Granted: 1, Used: 1, Count: 900, P50: new(11.6), P90: new(120.0),
			Periods: new(uint64(65)), ThrottledPeriods: new(uint64(65))},
			{Remedy: "pin", Granted: 1, Used: 1, Count: 900, P50: new(10.2), P90: new(12.0), Ratio: new(0.1),
				RatioLow: new(0.09), RatioHigh: new(0.12), Noisy: true}}}
}

func machine() topology.Machine {
	m, err := topology.Read(fstest.MapFS{
		"devices/system/cpu/online":  {Data: []byte("0-3\n")},
		"devices/system/cpu/present": {Data: []byte("0-3\n")},
	})
	if err != nil {
		panic(err)
	}
	return m
}

// policies are of a container that asks for what it may not, of one with a remedy, and of one that no agent was asked about.
func policies() []policy.ReportContainer {
	rules, err := policy.ParseRules([]byte("version: 1\nmode: apply\nrules:\n- match: {namespace: shop}\n  remedy: burst\n" +
		"  annotations: {allow: [narrow]}\n  slo: {objective: p99<20ms, command: probe}\n"))
	if err != nil {
		panic(err)
	}
	treatedAs := func(name, asks string, t policy.Treatment) policy.ReportContainer {
		c := container.Container{Name: name, Namespace: "shop",
			Group: cgroup.Group{Path: "/kubepods.slice/kubepods-burstable.slice/" + name}}
		var pod policy.Pod
		if asks != "" {
			pod.Annotations = map[string]string{policy.AnnotationRemedy: asks}
		}
		return rules.Container(c, rules.Effective(c, pod), t)
	}
	return []policy.ReportContainer{
		treatedAs("shop/cart-7d9f8b6c5-x2x4z/app", "pin",
			policy.Treatment{Reason: policy.ReasonForecast, Detail: "leave: at equal CPU the quota serves it as well", Until: now}),
		treatedAs("shop/search/index", "narrow", policy.Treatment{Remedy: "narrow", Transaction: "20261123-074452-de0d12"}),
		treatedAs("shop/mail", "", policy.Treatment{}),
	}
}

// manyHosts is a report of rows in which little is as it should be.
func manyHosts() fleet.Document {
	d := fleet.Document{
		From: now.Add(-24 * time.Hour), Until: now, Bound: 0.001, Containers: 240, Hosts: 12,
		Ledger: fleet.Ledger{CoresNow: 812, CoresAfter: 640.3, Rounding: 3.4, Saved: 171.7, SavedLow: 22, SavedHigh: 300.5},
		Applied: []fleet.Applied{{Remedy: "burst", Containers: 8, StoppedBefore: new(0.12), StoppedAfter: new(0.0001),
			CoresBefore: new(16.0), CoresAfter: new(16.0)}, {Remedy: "pin", Containers: 2}},
		Unknown: []fleet.Unknown{{Reason: "no limit of its own", Containers: 3, Cores: 4.5},
			{Reason: "demand was not measured: the probe needs root and BPF", Containers: 1}},
		Input: fleet.Input{GoneAfter: 15 * time.Minute, Files: 300, Refused: []fleet.Refused{
			{File: "/srv/fleet/cluster=eu1/date=2026-11-25/hour=12/n\x1b[2J17.parquet",
				Why: "No magic bytes found at end of file"}}, RefusedMore: 4,
			Rows: 70000, Copies: 1, Overlapping: 12,
			Problems: []fleet.Problem{{Why: "it is not of five minutes", Rows: 2, File: "/srv/fleet/a.parquet", Row: 7}},
			Ahead:    []fleet.Ahead{{Host: "eu1/n3", Seconds: 7200}}, AheadMore: 2,
			HostsGone: 8, ContainersGone: 41,
			Gone: []fleet.Gone{{Host: "eu1/n1", Containers: 5}, {Host: "eu1/n2\x1b[2J"}, {Host: "eu1/n4"},
				{Host: "eu1/n5"}, {Host: "eu1/n6"}, {Host: "eu1/n7"}}},
	}
	for i := range 20 {
		cores, share := float64(2+i*3), float64(i)/100
		s := fleet.Service{Name: fmt.Sprintf("service-with-a-long-name-%d/app", i), Containers: 1 + i, Hosts: 1 + i/2,
			CoresNow: new(cores), CoresAfter: new(cores * 0.8),
			CoresAfterLow: new(cores * 0.3), CoresAfterHigh: new(cores), Limit: new(1.6), LimitLow: new(0.6),
			LimitHigh: new(2.0), Remedy: new(fleet.Lower),
			RunnablePerCore: new(0.5 + float64(i*i)/10), StoppedShare: &share, StoppedShareLow: &share,
			UsedCPUs: new(0.4), StoppedBy: new("own")}
		s.SpentBy = &s.Name
		if i%6 == 5 {
			s.OverHosts = &fleet.Spread{Hosts: s.Hosts,
				Stopped: &fleet.Range{Of: s.Hosts, Median: share, Most: 2 * share, MostOn: "eu1/n7"}}
		}
		d.Services = append(d.Services, s)
	}
	d.Defaults = fleet.Defaults{Containers: 99, More: 3, Pools: []fleet.Default{
		{Pool: new("netty-nio"), Library: new("Netty's NIO event loop"), Setting: new("-Dio.netty.eventLoopThreads"), Services: 41,
			Containers: 90, Threads: 11520, Runnable: 900, RunnableP99: 300, RunnableMost: 31, TooMany: new(int64(11160)),
			DefaultCPUs: new(64), BeyondLimit: 90},
		{Name: new("event\x1b[2Jbus-*"), Services: 7, Containers: 20, Threads: 2560, Runnable: 22, RunnableMost: 2}}}
	d.Services[19].Name, d.Services[19].SpentBy, d.Services[19].StoppedBy = "<b>\x1b[2J\u202e", new("<script>alert(1)</script>"), new("pod")
	d.Services[18].SpentBy, d.Services[18].StoppedBy = nil, new("slice")
	d.Services = append(d.Services, fleet.Service{Containers: 1, Unknown: 1})
	return d
}
