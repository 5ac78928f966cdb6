package fix

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/curetest"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// learns puts a recording of such work behind Env.Learn. It runs under the limit in force, or under none.
func (b *bench) learns(work curetest.Work) {
	b.options.Wish, b.options.Tries = policy.Wish{Auto: true}, 3
	b.env.Learn = func(_ context.Context, target container.Container, _ time.Duration) (Learned, error) {
		length := b.length
		if length == 0 {
			length = 10 * time.Second
		}
		under, err := curetest.SettingOf(b.kernel, target.Group.Path)
		if err != nil {
			return Learned{}, err
		}
		r, err := curetest.Record(work, under, 4, length)
		return Learned{Explanation: r.Explanation, Load: r.Load, Missing: r.Missing, Runs: r.Runs}, err
	}
}

// A pool that works in bursts gets a burst, not a pin, and the recorded responses confirm it: no user is asked whether
// to keep it.
func TestForecastChoosesBurst(t *testing.T) {
	b := newBench(t)
	b.learns(curetest.Bursts)
	asked := []string{}
	b.options.Ask = func(question string) (bool, error) { asked = append(asked, question); return true, nil }
	found := policy.Proposal{}
	b.options.Found = func(p policy.Proposal) error { found = p; return nil }
	got, err := b.run()
	if err != nil {
		t.Fatal(err)
	}
	if got.Remedy != string(remedy.Burst) || got.Verdict != verdict.Better || !got.Kept || !slices.Equal(asked, []string{QuestionApply}) {
		t.Errorf("%s: %s, kept %v, asked %q: %s; %+v", got.Remedy, got.Verdict, got.Kept, asked, got.Why, got.Judgement)
	}
	if found.Choice == nil || found.Choice.Answer != policy.AnswerRemedy || got.Cause == "" || len(got.Tries) != 1 || !got.Tries[0].Kept {
		t.Errorf("found %+v, cause %q, tries %+v", found.Choice, got.Cause, got.Tries)
	}
	pools := got.Tries[0].Pools
	if i := slices.IndexFunc(pools, func(p Pool) bool { return p.Judged }); i < 0 || pools[i].Before == nil || pools[i].After == nil ||
		*pools[i].After.ResponseP99Ms >= *pools[i].Before.ResponseP99Ms || *pools[i].Before.DelayP99Ms > *pools[i].Before.ResponseP99Ms {
		t.Errorf("pools %+v", pools)
	}
	e, o := got.Tries[0].Expected, got.Tries[0].After
	if e == nil || e.PoolP99MsHigh == nil || o == nil || o.PoolP99Ms == nil || *o.PoolP99Ms > *e.PoolP99MsHigh {
		t.Errorf("expected %+v, came %+v", e, o)
	}
	held, err := apply.Status(b.env.Apply)
	if err != nil || len(held) != 1 || held[0].Outcome == nil || held[0].Outcome.After.PoolP99Ms == nil || held[0].Expected == nil {
		t.Errorf("in force %+v, %v", held, err)
	}
}

// The cause is told once, before anything is forecast; a longer recording with the same cause says nothing new.
func TestCauseBeforeForecast(t *testing.T) {
	b := newBench(t)
	b.length = 2 * time.Second // too few backlogs: it looks for longer
	b.learns(curetest.Bursts)
	b.options.Yes, b.options.DryRun, b.options.Window = true, true, 2*time.Second
	var order []string
	learn := b.env.Learn
	b.env.Learn = func(ctx context.Context, c container.Container, d time.Duration) (Learned, error) {
		order = append(order, "recorded")
		return learn(ctx, c, d)
	}
	b.env.Each = func() func(n int, do func(i int) error) error {
		order = append(order, "forecast")
		return func(n int, do func(i int) error) error {
			for i := range n {
				if err := do(i); err != nil {
					return err
				}
			}
			return nil
		}
	}
	b.options.Explained = func(e diagnose.Explanation, stoppedAbove bool) error {
		if e.Verdict == "" || !stoppedAbove {
			t.Errorf("%q, stopped above the bound: %v", e.Verdict, stoppedAbove)
		}
		order = append(order, "explained")
		return nil
	}
	b.options.Found = func(policy.Proposal) error { order = append(order, "found"); return nil }
	if _, err := b.run(); err != nil {
		t.Fatal(err)
	}
	if got := slices.DeleteFunc(order, func(s string) bool { return s == "recorded" }); !slices.Equal(got[:2],
		[]string{"explained", "forecast"}) ||
		slices.Index(got[1:], "explained") >= 0 || got[len(got)-1] != "found" {
		t.Errorf("order %q", got)
	}
}

// A recording that shows too little is followed by a longer one, up to a bound, and the look afterwards is as long.
func TestLooksForLonger(t *testing.T) {
	b := newBench(t)
	b.length = 2 * time.Second // of what it works on there are 8 throttled periods at most
	b.learns(curetest.Bursts)
	b.options.Yes, b.options.Window = true, 2*time.Second
	var lengths []time.Duration
	learn := b.env.Learn
	b.env.Learn = func(ctx context.Context, c container.Container, d time.Duration) (Learned, error) {
		lengths = append(lengths, d)
		return learn(ctx, c, d)
	}
	if _, err := b.run(); err != nil {
		t.Fatal(err)
	}
	longest := slices.Max(lengths)
	if lengths[0] != 2*time.Second || longest <= 2*time.Second || longest > stats.LongestLook || lengths[len(lengths)-1] != longest {
		t.Errorf("recorded for %v", lengths)
	}
	if !slices.ContainsFunc(b.said, func(s string) bool {
		return strings.Contains(s, "throttled periods in 2") && strings.Contains(s, "looking for")
	}) {
		t.Errorf("said %q", b.said)
	}
}

// A calm time at first does not end it, where the counters say that the quota stops it now and then: a longer recording shows that.
// A container that never was throttled is not looked at for longer.
func TestLooksForLongerInACalmTime(t *testing.T) {
	for before, want := range map[float64]string{0.05: verdict.Better, 0: verdictNothing} {
		b := newBench(t)
		first := true
		b.learns(func(s *recordingtest.Schedule, length time.Duration) {
			if first {
				first = false
				w := s.Threads("timer", 1)
				s.Repeat(int(length/(10*curetest.Tick)), 10*curetest.Tick, func(at time.Duration) { s.Work(at, curetest.Tick/10, w...) })
				return
			}
			curetest.Bursts(s, length)
		})
		b.options.Yes, b.calmAtFirst, b.throttledBefore = true, true, before
		got, err := b.run()
		if err != nil || got.Verdict != want {
			t.Errorf("throttled before %g: %s, %s, %v; said %q", before, got.Verdict, got.Why, err, b.said)
		}
		longer := slices.ContainsFunc(b.said, func(s string) bool {
			return strings.Contains(s, "no throttled period in 1 s, but 5 % of those before: looking for 20 s more")
		})
		if longer != (before > 0) {
			t.Errorf("throttled before %g: said %q", before, b.said)
		}
		if high := got.Before.StoppedPerSecondHigh; before > 0 && (high == nil || *high < 0.01) {
			t.Errorf("before %+v", got.Before)
		}
	}
}

// What does not help is undone, and the next best row is tried; when none helps, nothing stays.
func TestTriesTheNextBest(t *testing.T) {
	for _, tc := range []struct {
		tries, want int
	}{{1, 1}, {3, 2}} {
		b := newBench(t)
		b.learns(curetest.Bursts)
		learn := b.env.Learn
		calls := 0
		var first Learned
		b.env.Learn = func(ctx context.Context, c container.Container, d time.Duration) (Learned, error) {
			calls++
			if calls == 1 {
				var err error
				first, err = learn(ctx, c, d)
				return first, err
			}
			return first, nil // whatever is done, it comes out as before
		}
		b.options.Tries, b.options.Yes, b.options.Wish.May = tc.tries, true, []remedy.Kind{remedy.Raise}
		before := b.kernel.Snapshot()
		got, err := b.run()
		if err != nil || got.Kept || got.Verdict != verdict.NoChange || len(got.Tries) < 1 ||
			len(got.Tries) > tc.tries || tc.tries == 1 && len(got.Tries) != 1 {
			t.Errorf("%d tries: %v, kept %v, %s: %+v", tc.tries, err, got.Kept, got.Verdict, got.Tries)
		}
		if tc.tries > 1 && (len(got.Tries) < tc.want || got.Tries[0].Remedy == got.Tries[1].Remedy &&
			maps.Equal(got.Tries[0].Parameters, got.Tries[1].Parameters)) {
			t.Errorf("the same again: %+v", got.Tries)
		}
		if diff := before.Settings().Diff(b.kernel.Snapshot().Settings()); len(diff) > 0 {
			t.Errorf("left behind: %q", diff)
		}
	}
}

// Threads that compute without a pause need more CPU, which only a person grants.
func TestMoreCPUIsAsked(t *testing.T) {
	for _, tc := range []struct {
		name   string
		set    func(*bench)
		kept   bool
		asked  string
		remedy string
	}{
		{"not by --yes", func(b *bench) { b.options.Yes = true }, false, "", string(remedy.Raise)},
		{"declined", func(b *bench) { b.options.Ask = func(string) (bool, error) { return false, nil } }, false, QuestionMoreCPU, ""},
		{"--may raise", func(b *bench) {
			b.options.Yes, b.options.Wish.May = true, []remedy.Kind{remedy.Raise}
			b.used = 1
		}, true, "", string(remedy.Raise)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t)
			b.learns(curetest.Burners)
			tc.set(b)
			asked := ""
			if ask := b.options.Ask; ask != nil {
				b.options.Ask = func(q string) (bool, error) { asked = q; return ask(q) }
			}
			before := b.kernel.Snapshot()
			got, err := b.run()
			if err != nil || asked != tc.asked || tc.remedy != "" && got.Remedy != tc.remedy {
				t.Fatalf("%s, asked %q, %v: %s", got.Remedy, asked, err, got.Why)
			}
			applied := len(before.Settings().Diff(b.kernel.Snapshot().Settings())) > 0
			if !tc.kept && applied {
				t.Error("more CPU was granted")
			}
			if tc.kept && len(got.Tries) != 1 {
				t.Errorf("tries %+v", got.Tries)
			}
			if !tc.kept && !strings.Contains(got.Why, "only more CPU brings more work") {
				t.Errorf("why %q", got.Why)
			}
		})
	}
}

// A recording that cannot be had is said, and the counters decide.
func TestWithoutARecording(t *testing.T) {
	b := newBench(t)
	b.options.Wish, b.options.Yes = policy.Wish{Auto: true}, true
	b.env.Learn = func(context.Context, container.Container, time.Duration) (Learned, error) {
		return Learned{Missing: "this kernel has no BTF"}, nil
	}
	got, err := b.run()
	if err != nil || got.Remedy != string(remedy.Burst) ||
		!strings.Contains(got.Proposal.Why, "nothing was forecast: this kernel has no BTF") {
		t.Errorf("%s, %v: %s", got.Remedy, err, got.Proposal.Why)
	}
}

// A recording that lost events, as on a host whose CPUs are full, says nothing about responses.
func TestLostEventsJudgeNothing(t *testing.T) {
	b := newBench(t)
	b.learns(curetest.Bursts)
	learn, calls := b.env.Learn, 0
	b.env.Learn = func(ctx context.Context, c container.Container, d time.Duration) (Learned, error) {
		learned, err := learn(ctx, c, d)
		if calls++; calls > 1 {
			learned.Runs.Lost = 4
		}
		return learned, err
	}
	b.options.Ask = func(question string) (bool, error) { return question == QuestionApply, nil }
	got, err := b.run()
	if err != nil || got.Verdict != verdict.Unverified || got.Kept || len(got.Tries) != 1 ||
		len(got.Tries[0].Pools) > 0 || !strings.Contains(got.Judgement.Why, "lost 4 events for each one") {
		t.Errorf("%s, kept %v, %v: %+v", got.Verdict, got.Kept, err, got.Judgement)
	}
}

// With both judges the worse verdict counts.
func TestBothJudge(t *testing.T) {
	for i, tc := range []struct {
		after   float64
		verdict string
		kept    bool
	}{{12, verdict.Better, true}, {97.001, verdict.NoChange, false}} {
		if i > 0 && testing.Short() {
			break
		}
		b := newBench(t)
		b.learns(curetest.Bursts)
		b.options.Yes, b.options.Both, b.options.Tries = true, true, 1
		b.latencies = [][]float64{same(97), same(50), same(tc.after)}
		got, err := b.run()
		if err != nil || got.Verdict != tc.verdict || got.Kept != tc.kept || !strings.Contains(got.Judgement.Why, "recorded: p99") {
			t.Errorf("%s, kept %v, %v: %+v", got.Verdict, got.Kept, err, got.Judgement)
		}
	}
}

// Where the user's own latency judges, the recorded pool goes into the journal beside its forecast all the same.
func TestForecastIsComparedUnderSLO(t *testing.T) {
	b := newBench(t)
	b.learns(curetest.Bursts)
	b.options.Yes = true
	b.latencies = [][]float64{same(97), same(50), same(12)}
	got, err := b.run()
	if err != nil || got.Verdict != verdict.Better || strings.Contains(got.Judgement.Why, "recorded:") {
		t.Fatalf("%s, %v: %+v", got.Verdict, err, got.Judgement)
	}
	held, err := apply.Status(b.env.Apply)
	if err != nil || len(held) != 1 {
		t.Fatalf("in force %+v, %v", held, err)
	}
	if accuracies := txn.Accuracies(held); !slices.ContainsFunc(accuracies,
		func(a txn.Accuracy) bool { return a.Figure == "pool_p99_ms" && a.Measured == 1 }) {
		t.Errorf("%+v of %+v", accuracies, held[0].Outcome)
	}
}

// A remedy that is asked for by name is judged by the recording too.
func TestAskedForIsJudged(t *testing.T) {
	b := newBench(t)
	b.learns(curetest.Bursts)
	b.options.Wish = policy.Wish{Request: remedy.Request{Kind: remedy.Burst}}
	b.options.Yes = true
	got, err := b.run()
	if err != nil || got.Verdict != verdict.Better || !got.Kept || got.Proposal.Choice != nil {
		t.Errorf("%s, kept %v, %v: %+v", got.Verdict, got.Kept, err, got.Judgement)
	}
}

// An observation that fails ends the recording beside it, before the change and after it: the error comes at once.
func TestFailedObservationEndsTheRecording(t *testing.T) {
	for _, fails := range []int{1, 2} {
		b := newBench(t)
		b.learns(curetest.Bursts)
		b.options.Wish, b.options.Yes = policy.Wish{Auto: true}, true
		b.failObserve = fails
		learn, recordings, cause := b.env.Learn, 0, error(nil)
		b.env.Learn = func(ctx context.Context, c container.Container, length time.Duration) (Learned, error) {
			if recordings++; recordings < fails {
				return learn(ctx, c, length)
			}
			<-ctx.Done() // a recording ends with its context, or after its length
			cause = ctx.Err()
			return Learned{}, cause
		}
		if _, err := b.run(); err == nil || !strings.Contains(err.Error(), "the counters are gone") || cause == nil {
			t.Errorf("observation %d fails: the fix says %v, its recording ends with %v", fails, err, cause)
		}
	}
}

// A remedy that is asked for by name gets its row of the forecast, with the settings asked for, as one that was chosen does.
func TestAskedForIsForecast(t *testing.T) {
	for i, tc := range []struct {
		request remedy.Request
		row     string // its name in the table; "": those settings have none
		says    string
	}{
		{remedy.Request{Kind: remedy.Burst, Burst: 30 * time.Millisecond}, "burst 30ms", "burst was asked for: p99"},
		{remedy.Request{Kind: remedy.Burst, Period: 50 * time.Millisecond}, "burst 50ms, period 50ms", "was asked for: p99"},
		{remedy.Request{Kind: remedy.Raise, To: 3}, "raise to 3 CPUs", "it grants 3 CPUs, 2 more than the limit"},
		{remedy.Request{Kind: remedy.Pin, CPUs: 2}, "pin to 2 CPUs", "it grants 2 CPUs, 1 more than the limit"},
		{remedy.Request{Kind: remedy.Narrow, CPUs: 2}, "", "nothing is forecast of it with these settings"},
	} {
		if i > 0 && testing.Short() {
			break
		}
		b := newBench(t)
		b.learns(curetest.Bursts)
		b.options.Wish, b.options.DryRun = policy.Wish{Request: tc.request}, true
		got, err := b.run()
		if err != nil {
			t.Fatalf("%+v: %v", tc.request, err)
		}
		p := got.Proposal
		if p.Plan == nil || (p.Plan.Expected != nil) != (tc.row != "") {
			t.Errorf("%+v: expected %+v", tc.request, p.Plan)
			continue
		}
		if !strings.Contains(p.Why, tc.says) {
			t.Errorf("%+v: why %q, want %q in it", tc.request, p.Why, tc.says)
		}
		rows := p.Known.Forecast.Rows
		i := slices.IndexFunc(rows, func(r forecast.Row) bool { return r.Remedy.Text(p.Known.Forecast.Limit) == tc.row })
		if tc.row == "" {
			continue
		}
		if i < 0 || rows[i].JudgedRange == nil || p.Plan.Expected.PoolP99MsHigh == nil ||
			*p.Plan.Expected.PoolP99MsHigh != rows[i].JudgedRange.High {
			t.Errorf("%s: row %d, expected %+v", tc.row, i, p.Plan.Expected)
		}
	}
}

// recordsOnce keeps what Env.Learn gives by a key: the same work under the same settings gives the same recording.
func (b *bench) recordsOnce(kept map[string]Learned, key func() string) {
	record := b.env.Learn
	b.env.Learn = func(ctx context.Context, target container.Container, length time.Duration) (Learned, error) {
		if err := ctx.Err(); err != nil {
			return Learned{}, err
		}
		of := key()
		if _, ok := kept[of]; !ok {
			learned, err := record(ctx, target, length)
			if err != nil {
				return learned, err
			}
			kept[of] = learned
		}
		return kept[of], nil
	}
}
