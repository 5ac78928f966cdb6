package fix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// bench is a modelled host of 4 CPUs with a container that its quota of 1 CPU
// stops and a calm one. A container is stopped as long as it has a quota.
type bench struct {
	t       *testing.T
	kernel  *cgroupmodel.Kernel
	env     Env
	options Options
	do      func(context.Context, Env, Options) (Result, error)
	said    []string
	// stoppedAfter is how the busy one is stopped once its quota is gone,
	// calmAfter the calm one.
	stoppedAfter, calmAfter float64
	// calmAtFirst: the busy one is not stopped while it is first looked at. throttledBefore is the share of its periods before that.
	calmAtFirst     bool
	throttledBefore float64
	used            float64
	calmUses        float64     // CPUs that the calm one uses afterwards; 0: as before
	latencies       [][]float64 // of each call
	observations    int
	failObserve     int           // the call that fails; 0: none
	length          time.Duration // of recordings; 0: 10 s
}

var (
	busy = container.Container{Group: cgroup.Group{Path: "/busy", CPUSetPath: "/busy", CPUAcctPath: "/busy"}, Name: "busy"}
	calm = container.Container{Group: cgroup.Group{Path: "/calm", CPUSetPath: "/calm", CPUAcctPath: "/calm"}, Name: "calm"}
)

func newBench(t *testing.T) *bench {
	b := &bench{t: t, kernel: cgroupmodel.New(cgroupmodel.V1("0-3")), do: Run, used: 0.5}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, path := range []string{"/busy", "/calm"} {
		for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
			must(b.kernel.Make(c, path))
		}
		must(b.kernel.Write(cgroup.CPUSet, path, "cpuset.mems", "0"))
		must(b.kernel.Write(cgroup.CPUSet, path, "cpuset.cpus", "0-3"))
		b.kernel.Spawn(path, 100+i)
	}
	must(b.kernel.Write(cgroup.CPU, "/busy", "cpu.cfs_quota_us", "100000"))
	b.env = Env{
		Apply:   apply.Env{FS: b.kernel, StateDir: t.TempDir(), BootID: "this", By: "test"},
		Observe: b.observe,
		Facts: func(ctx context.Context, containers []container.Container, used map[string]float64) (hoststate.Facts, error) {
			held, err := apply.Status(b.env.Apply)
			if err != nil {
				return hoststate.Facts{}, err
			}
			return gather.From(ctx, b.kernel, false, containers, gather.Options{Root: sysfs(), Held: held, Used: used})
		},
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	b.options = Options{Target: busy, All: []container.Container{busy, calm},
		Wish: policy.Wish{Request: remedy.Request{Kind: remedy.Pin}}, Window: time.Second,
		Say: func(text string) { b.said = append(b.said, text) }}
	return b
}

func sysfs() fstest.MapFS {
	files := fstest.MapFS{
		"sys/devices/system/cpu/present":        {Data: []byte("0-3\n")},
		"sys/devices/system/cpu/online":         {Data: []byte("0-3\n")},
		"sys/devices/system/node/node0/cpulist": {Data: []byte("0-3\n")},
	}
	for id := range 4 {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", id)
		files[dir+"core_cpus_list"] = &fstest.MapFile{Data: fmt.Appendln(nil, id)}
		files[dir+"package_cpus_list"] = &fstest.MapFile{Data: []byte("0-3\n")}
	}
	return files
}

func (b *bench) observe(ctx context.Context, containers []container.Container, window time.Duration) ([]observe.Observation, error) {
	b.observations++
	if b.observations == b.failObserve {
		return nil, errors.New("the counters are gone")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var seen []observe.Observation
	for _, c := range containers {
		levels, err := cgroup.Levels(b.kernel, c.Group.Path)
		if err != nil {
			return nil, err
		}
		limit, limited, at := cgroup.Effective(levels)
		stopped := 0.0
		switch {
		case c.Name == "busy" && limited && b.calmAtFirst && b.observations == 1:
		case c.Name == "busy" && limited:
			stopped = 0.9
		case c.Name == "busy":
			stopped = b.stoppedAfter
		case b.observations > 1:
			stopped = b.calmAfter
		}
		d := time.Duration(stopped * float64(window))
		used := b.used
		if c.Name == "calm" && b.observations > 1 && b.calmUses > 0 {
			used = b.calmUses
		}
		o := observe.Observation{Container: c, Window: window, Levels: levels, UsedCPUs: &used, StoppedLow: &d, StoppedHigh: &d}
		if limited {
			o.LimitCPUs, o.LimitAt, o.ThrottledBefore = &limit, at, &b.throttledBefore
		}
		seen = append(seen, o)
	}
	return seen, nil
}

func (b *bench) run() (Result, error) {
	b.source()
	return b.do(b.t.Context(), b.env, b.options)
}

// source puts the latencies of each call behind the fix.
func (b *bench) source() {
	if b.latencies != nil {
		b.options.Objective = objective.Objective{Quantile: 0.99, Bound: 20 * time.Millisecond}
		b.env.Latencies = func(context.Context, time.Time) (slo.Answer, error) {
			if len(b.latencies) == 0 {
				return slo.Answer{}, errors.New("the source is gone")
			}
			next := b.latencies[0]
			b.latencies = b.latencies[1:]
			return slo.Answer{MS: next}, nil
		}
	}
}

// same are latencies around a value, enough of them for a p99.
func same(ms float64) []float64 {
	all := make([]float64, 1000)
	for i := range all {
		all[i] = ms + float64(i%10)/100
	}
	return all
}

// unmeasured are the cases of TestRun that lack a measurement.
var unmeasured = []string{
	"too few samples: nothing is written", "an empty source: nothing is written", "the source fails afterwards", "looking fails afterwards",
	"stopped time is not known: nothing is written",
}

func TestRun(t *testing.T) {
	answers := func(all ...bool) func(*bench) {
		return func(b *bench) {
			b.options.Ask = func(string) (bool, error) {
				next := all[0]
				all = all[1:]
				return next, nil
			}
		}
	}
	yes := func(b *bench) { b.options.Yes = true }
	for _, tc := range []struct {
		name    string
		set     []func(*bench)
		verdict string
		kept    bool
		above   bool
		why     string
		err     string
	}{
		{"unverified, confirmed twice", []func(*bench){answers(true, true)}, verdict.Unverified, true, false, "", ""},
		{"declined before anything is written", []func(*bench){answers(false)}, VerdictNotApplied, false, true, "", ""},
		{"unverified, not confirmed", []func(*bench){answers(true, false)}, verdict.Unverified, false, true, "not confirmed", ""},
		{"unverified, said yes to", []func(*bench){yes}, verdict.Unverified, true, false, "", ""},
		{"no terminal", nil, VerdictNotApplied, false, true, "", "say --yes"},
		{"no effect", []func(*bench){yes, func(b *bench) { b.stoppedAfter = 0.9 }}, verdict.Unverified, false, true,
			"stopped as long as before", ""},
		{"a neighbour is harmed", []func(*bench){yes, func(b *bench) { b.calmAfter = 0.3 }}, verdict.Unverified, false,
			true, "CPUs shrank", ""},
		{"better", []func(*bench){answers(true),
			func(b *bench) { b.latencies = [][]float64{same(97), same(50), same(12)} }}, verdict.Better, true, false, "", ""},
		{"worse", []func(*bench){yes, func(b *bench) { b.latencies = [][]float64{same(12), same(50), same(97)} }},
			verdict.Worse, false, true, "worse", ""},
		{"no change", []func(*bench){yes,
			func(b *bench) { b.latencies = [][]float64{same(12), same(50), same(12.005)} }}, verdict.NoChange, false,
			true, "no change", ""},
		{"too few samples: nothing is written",
			[]func(*bench){yes, func(b *bench) { b.latencies = [][]float64{{1, 2, 3}} }}, VerdictNotApplied, false,
			true, "", "printed 3 numbers, too few to tell p99<20ms: 500 are needed"},
		{"the objective is met: nothing is written", []func(*bench){yes, func(b *bench) {
			b.options.OnlyIfMissed, b.latencies = true, [][]float64{same(12)}
		}}, VerdictNotApplied, false, true, "", ErrObjectiveMet.Error()},
		{"the objective is missed", []func(*bench){yes, func(b *bench) {
			b.options.OnlyIfMissed, b.latencies = true, [][]float64{same(97), same(50), same(12)}
		}}, verdict.Better, true, false, "", ""},
		{"an empty source: nothing is written", []func(*bench){yes, func(b *bench) { b.latencies = [][]float64{{}} }},
			VerdictNotApplied, false, true, "", "gave nothing for the time since"},
		{"the source fails afterwards", []func(*bench){yes, func(b *bench) { b.latencies = [][]float64{same(12)} }},
			verdict.Unverified, false, true, "could not be measured", "the source is gone"},
		{"looking fails afterwards", []func(*bench){yes, func(b *bench) { b.failObserve = 2 }}, verdict.Unverified,
			false, true, "could not be measured", "counters are gone"},
		{"nothing to fix", []func(*bench){yes, func(b *bench) {
			_ = b.kernel.Write(cgroup.CPU, "/busy", "cpu.cfs_quota_us", "-1")
		}}, verdictNothing, false, false, "nothing to fix", ""},
		{"vetoed", []func(*bench){yes, func(b *bench) {
			b.options.Shown = func(policy.Proposal, apply.Result) error { return errors.New("over the budget") }
		}}, VerdictNotApplied, false, true, "", "over the budget"},
		{"no remedy", []func(*bench){yes, func(b *bench) {
			b.options.Wish = policy.Wish{Request: remedy.Request{Kind: remedy.Pin, CPUs: 9}}
		}}, VerdictNotApplied, false, true, "", "not pin"},
		{"stopped time is not known: nothing is written", []func(*bench){yes, func(b *bench) {
			look := b.env.Observe
			b.env.Observe = func(ctx context.Context, containers []container.Container,
				window time.Duration) ([]observe.Observation, error) {
				seen, err := look(ctx, containers, window)
				for i := range seen {
					seen[i].StoppedLow, seen[i].StoppedHigh = nil, nil
				}
				return seen, err
			}
		}}, VerdictNotApplied, false, false, "was not measured", "was not measured"},
		{"apply: asked for, nothing asked", []func(*bench){func(b *bench) {
			b.do, b.options.Wish = Apply, policy.Wish{Request: remedy.Request{Kind: remedy.Burst}}
		}}, verdict.Unverified, true, true, "", ""},
		{"apply: kept though it could not be looked at", []func(*bench){func(b *bench) {
			b.do, b.options.Wish, b.failObserve = Apply, policy.Wish{Request: remedy.Request{Kind: remedy.Pin}}, 2
		}}, verdict.Unverified, true, true, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t)
			for _, set := range tc.set {
				set(b)
			}
			before := b.kernel.Snapshot()
			got, err := b.run()
			if unmeasured := slices.Contains(unmeasured, tc.name); errors.As(err, new(*NotMeasured)) != unmeasured {
				t.Errorf("error %v: not measured is to be %v", err, unmeasured)
			}
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if got.Verdict != tc.verdict || got.Kept != tc.kept || got.StoppedAbove != tc.above {
				t.Errorf("verdict %q, kept %v, above %v; want %q, %v, %v", got.Verdict, got.Kept, got.StoppedAbove,
					tc.verdict, tc.kept, tc.above)
			}
			if !strings.Contains(got.Why, tc.why) {
				t.Errorf("why %q, want %q in it", got.Why, tc.why)
			}
			diff := before.Settings().Diff(b.kernel.Snapshot().Settings())
			if tc.kept == (len(diff) == 0) {
				t.Errorf("kept %v, but changed: %q", tc.kept, diff)
			}
			held, err := apply.Status(b.env.Apply)
			if err != nil || (len(held) == 1) != tc.kept {
				t.Errorf("in force %v, error %v", held, err)
			}
			if bad := b.kernel.Check(); len(bad) > 0 {
				t.Errorf("tasks without CPUs: %q", bad)
			}
		})
	}
}

// An interrupt after applying, at any point, leaves nothing in force.
func TestInterruptUndoes(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.options.Yes = true
	b.env.Wait = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
	before := b.kernel.Snapshot()
	got, err := Run(ctx, b.env, b.options)
	if !errors.Is(err, context.Canceled) || got.Kept {
		t.Errorf("error %v, kept %v", err, got.Kept)
	}
	if diff := before.Settings().Diff(b.kernel.Snapshot().Settings()); len(diff) > 0 {
		t.Errorf("left behind: %q", diff)
	}
	if !slices.ContainsFunc(b.said, func(s string) bool { return strings.Contains(s, "undoing") }) {
		t.Errorf("said %q, not that it is undone", b.said)
	}
}

// What the kernel refuses to take back is in force, and no success.
func TestUndoingIsRefused(t *testing.T) {
	b := newBench(t)
	b.options.Yes, b.stoppedAfter = true, 0.9
	b.env.Wait = func(context.Context, time.Duration) error {
		b.kernel.Before = func(op cgroupmodel.Op) error {
			if op.Changes() && op.Path == "/busy" && op.File == "cpu.cfs_quota_us" {
				return &cgroup.Error{Op: op.Kind, Path: op.Path, File: op.File, Value: op.Value, Errno: unix.EINVAL}
			}
			return nil
		}
		return nil
	}
	got, err := b.run()
	var not *apply.NotRestored
	if !errors.As(err, &not) || !got.Kept || !strings.Contains(err.Error(), "stopped as long as before") {
		t.Errorf("kept %v, %v", got.Kept, err)
	}
	held, err := apply.Status(b.env.Apply)
	if err != nil || len(held) != 1 || held[0].ID != got.ID {
		t.Errorf("in force %v, error %v", held, err)
	}
}

// What came is in the history, with the figures. Nothing was forecast, so nothing was expected.
func TestOutcomeIsRecorded(t *testing.T) {
	b := newBench(t)
	b.options.Yes = true
	b.latencies = [][]float64{same(97), same(50), same(12)}
	if _, err := b.run(); err != nil {
		t.Fatal(err)
	}
	held, err := apply.Status(b.env.Apply)
	if err != nil || len(held) != 1 {
		t.Fatalf("in force %v, error %v", held, err)
	}
	o, e := held[0].Outcome, held[0].Expected
	if o == nil || e != nil || o.Before == nil || o.After == nil {
		t.Fatalf("expected %+v, outcome %+v", e, o)
	}
	if *o.Before.StoppedPerSecondHigh != 0.9 || *o.After.StoppedPerSecondHigh != 0 || *o.Before.P99Ms < 97 ||
		*o.After.P99Ms > 13 || o.Verdict != verdict.Better {
		t.Errorf("outcome %+v, before %+v, after %+v", o, o.Before, o.After)
	}
}

// A secondary on lent CPUs is undone, although it was asked for plainly, where
// their owner loses CPU time or the latencies given get worse; else it is kept.
func TestLendersDecide(t *testing.T) {
	for _, tc := range []struct {
		name     string
		uses     float64
		stopped  float64
		after    float64 // latency in ms; before it was 12
		kept     bool
		harmless bool // the owner lends nothing
	}{
		{name: "unharmed", uses: 0.49, kept: true},
		{name: "less CPU time", uses: 0.3},
		{name: "stopped", uses: 0.5, stopped: 0.2},
		{name: "slower", uses: 0.5, after: 97},
		{name: "as fast", uses: 0.5, after: 12.005, kept: true},
		{name: "less CPU time, but nothing is lent", uses: 0.3, kept: true, harmless: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t)
			b.do, b.options.Target = Apply, calm
			b.options.Wish = policy.Wish{Request: remedy.Request{Kind: remedy.Pin, CPUs: 1, Shares: !tc.harmless}}
			if got, err := b.run(); err != nil || !got.Kept {
				t.Fatalf("pin: %+v, %v", got, err)
			}
			before := b.kernel.Snapshot()
			b.observations, b.calmUses, b.calmAfter, b.options.Target = 0, tc.uses, tc.stopped, busy
			b.options.Wish.Request = remedy.Request{Kind: remedy.Secondary}
			if tc.after > 0 {
				b.latencies = [][]float64{same(12), same(50), same(tc.after)}
			}
			got, err := b.run()
			if err != nil || got.Kept != tc.kept {
				t.Fatalf("kept %v, %v: %s", got.Kept, err, got.Why)
			}
			if diff := before.Settings().Diff(b.kernel.Snapshot().Settings()); (len(diff) > 0) != tc.kept {
				t.Errorf("kept %v, changed %q", tc.kept, diff)
			}
			if !tc.kept && !strings.Contains(got.Why, "who lends it CPUs got worse") {
				t.Errorf("why %q", got.Why)
			}
		})
	}
}

// TestASecondFixSaysThatATrialRuns, and looks at nothing, whether it would write or not; afterwards it may.
func TestASecondFixSaysThatATrialRuns(t *testing.T) {
	b := newBench(t)
	facts, err := b.env.Facts(t.Context(), []container.Container{busy, calm}, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := remedy.Make(facts, busy, remedy.Request{Kind: remedy.Raise})
	if err != nil {
		t.Fatal(err)
	}
	purpose := plan.Purpose()
	purpose.Trial = time.Minute
	first, err := apply.Apply(t.Context(), b.env.Apply, purpose, plan.Changes)
	if err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		o := b.options
		o.DryRun = dry
		_, err := Run(t.Context(), b.env, o)
		if err == nil || !strings.Contains(err.Error(), first.ID+" is on trial: process") ||
			!strings.Contains(err.Error(), txn.AwaitTrial) {
			t.Errorf("dry run %v: %v", dry, err)
		}
	}
	if b.observations > 0 {
		t.Error("it looked at what another one changes")
	}
	if _, err := apply.Restore(t.Context(), b.env.Apply, apply.Selector{IDs: []string{first.ID}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), b.env, b.options); err != nil && strings.Contains(err.Error(), "on trial") {
		t.Error(err)
	}
}
