package fix

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// result is a fix that applied the second row of a forecast.
func result() fix.Result {
	f := &forecast.Forecast{Limit: 1, Rows: []forecast.Row{{Remedy: forecast.Remedy{Name: forecast.None}},
		{Remedy: forecast.Remedy{Name: forecast.Burst}}}}
	choice := &policy.Choice{Answer: policy.AnswerRemedy, Row: 1, Why: "burst helps", Certain: true}
	return fix.Result{
		Target: "web", Cause: "a burst", Why: "p99 fell",
		Tries:    []fix.Try{{Remedy: "burst", Expected: &txn.Expected{}, Verdict: "better", Kept: true}},
		Proposal: policy.Proposal{Known: &policy.Known{Forecast: f}, Choice: choice},
	}
}

// The keys that the JSON of a fix promises are there, each with what it says.
func TestJSONIsTheContract(t *testing.T) {
	asked, bare := result(), result()
	asked.Proposal.Choice = nil
	bare.Proposal = policy.Proposal{}
	for name, tc := range map[string]struct {
		of     fix.Result
		rows   int
		chosen bool
	}{"chosen": {result(), 2, true}, "asked for by name": {asked, 2, false}, "without a forecast": {bare, 0, false}} {
		var b bytes.Buffer
		if err := JSON(&b, tc.of, nil); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Schema  string           `json:"schema"`
			Version int              `json:"version"`
			Rows    []map[string]any `json:"rows"`
			Chosen  map[string]any   `json:"chosen"`
			Tries   []map[string]any `json:"tries"`
		}
		var keys map[string]any
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b.Bytes(), &keys); err != nil {
			t.Fatal(err)
		}
		if got.Schema != "fix" || got.Version != 1 || got.Rows == nil || len(got.Rows) != tc.rows ||
			(got.Chosen != nil) != tc.chosen || len(got.Tries) != 1 {
			t.Errorf("%s: %s", name, b.String())
			continue
		}
		has(t, keys, "target cause rows chosen why tries verdict")
		has(t, got.Tries[0], "remedy parameters expected before after verdict objective_met kept")
		if tc.chosen {
			has(t, got.Chosen, "answer row remedy parameters why within_error advice")
		}
	}
}

// Beside the judged pool those are shown that became slower or faster, and no more than fit.
func TestOtherPools(t *testing.T) {
	r := result()
	r.ID, r.Judgement = "7", &verdict.Judgement{Verdict: verdict.Better}
	at := func(p50 float64, p99 *float64) *fix.PoolTimes {
		return &fix.PoolTimes{Runs: 120, ResponseP50Ms: p50, ResponseP99Ms: p99}
	}
	r.Tries[0].Pools = []fix.Pool{{Name: "get", Judged: true, Before: at(1, nil), After: at(2, nil)}, {Name: "gone", Before: at(1, nil)},
		{Name: "alike", Before: at(100, nil), After: at(105, nil)}, {Name: "tiny", Before: at(0.1, nil), After: at(0.4, nil)},
		{Name: "few", Before: at(1, nil), After: at(2, new(9.0))}, {Name: "many", Before: at(1, new(5.0)), After: at(2, new(9.0))}}
	r.Tries[0].Pools = append([]fix.Pool{
		{Name: "seldom", Before: &fix.PoolTimes{Runs: 2, ResponseP50Ms: 1}, After: at(9, nil)}}, r.Tries[0].Pools...)
	for range 2 * mostPools {
		r.Tries[0].Pools = append(r.Tries[0].Pools, r.Tries[0].Pools[len(r.Tries[0].Pools)-1])
	}
	var b strings.Builder
	if err := Write(&b, r, nil, page.Style{Width: page.Unbounded}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if !strings.Contains(got, "another pool        few: p50 from 1.00 ms to 2.00 ms, 120 and 120 samples\n") ||
		!strings.Contains(got, "another pool        many: p99 from 5.00 ms to 9.00 ms, 120 and 120 samples\n") ||
		strings.Count(got, "another pool") != mostPools || strings.Contains(got, "gone") ||
		strings.Contains(got, "seldom") || strings.Contains(got, "alike") || strings.Contains(got, "tiny") ||
		strings.Contains(got, "get:") {
		t.Error(got)
	}
}

func has(t *testing.T, in map[string]any, keys string) {
	t.Helper()
	for key := range strings.FieldsSeq(keys) {
		if _, ok := in[key]; !ok {
			t.Errorf("no %s in %v", key, in)
		}
	}
}

// After a try what changed is told and not the whole table, and the end says in a line what was tried.
func TestRetryIsShort(t *testing.T) {
	f := &forecast.Forecast{Window: 10 * time.Second, Limit: 1, CPUs: 4, Judged: &forecast.Judged{Of: forecast.OfRequests, Quantile: 0.99}}
	for _, r := range []forecast.Remedy{{Name: forecast.None}, {Name: forecast.Burst, Burst: 100 * time.Millisecond},
		{Name: forecast.Narrow}} {
		f.Rows = append(f.Rows, forecast.Row{Remedy: r, Reserved: new(1.0), Judged: new(30.0)})
	}
	choice := policy.Choice{Answer: policy.AnswerRemedy, Row: 2, Why: "narrow: p99 of requests from 58 ms to 17 ms"}
	known := policy.Known{Forecast: f, Tried: map[int]string{1: "tried: no change"}}
	var b strings.Builder
	if err := Found(&b, policy.Proposal{Choice: &choice, Known: &known}, page.Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "burst 100ms: tried: no change") ||
		!strings.Contains(got, "from 58 ms to 17 ms") || strings.Contains(got, "90 % of cases") {
		t.Errorf("a retry says\n%s", got)
	}
	got := tried(fix.Result{Tries: []fix.Try{
		{Remedy: "burst", Parameters: map[string]string{"burst": "100ms"}, Verdict: "no change"}, {Remedy: "narrow", Verdict: "better"}}})
	if got != "burst 100ms: no change; narrow: better" {
		t.Errorf("%q", got)
	}
}

// The table of a trial has each variant with what was measured and forecast, and what is not known as missing.
func TestTrialTable(t *testing.T) {
	trial := &fix.Trial{Rounds: 2, Seconds: 55, Quantile: 0.95, Of: "requests", Slow: 3, Requests: 900, Rows: []fix.TrialRow{
		{Name: "left as it is", MeasuredMs: new(87.9), LowMs: new(87.5), HighMs: new(89.8), P50Ms: new(41.0),
			P90Ms: new(87.4), ForecastMs: new(89.7), StoppedMs: new(53.0), Rounds: 2, Requests: 384},
		{Name: "burst 60ms", MeasuredMs: new(42.6), LowMs: new(42.1), HighMs: new(43.0), P50Ms: new(39.6),
			P90Ms: new(42.0), Rounds: 2, Requests: 384, Kept: true},
		{Name: "narrow\x1b[2J", Rounds: 1, Requests: 3, Ended: new("harm"), Why: "stopped at once: a request took 3 s"},
	}}
	var b bytes.Buffer
	if err := Trial(&b, trial, page.Style{Width: 150}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  remedy", "p95 ms", "stopped", "53.0 ms/s", "> burst 60ms", "42.1 to 43.0",
		"stopped at once: a request took 3 s", "2 rounds in turns, 55 s; 3 of 900 requests took longer than twice the p95"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	// The forecast may be of another quantile, which its head names; what a cap holds has a column where there is one.
	trial.ForecastQuantile, trial.Rows[0].SiblingCPUs = new(0.99), new(0.479)
	var more bytes.Buffer
	if err := Trial(&more, trial, page.Style{Width: 160}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"forecast p99", "sibling", "0.479 CPUs"} {
		if !strings.Contains(more.String(), want) || strings.Contains(b.String(), want) {
			t.Errorf("%q in\n%s and not in\n%s", want, more.String(), b.String())
		}
	}
	if strings.Contains(b.String(), "\x1b[2J") || strings.Contains(b.String(), " 0.00") {
		t.Errorf("a name is not escaped, or what was not measured is shown as 0:\n%s", b.String())
	}
}

// The last lines say what the look took, and nothing where it is not known.
func TestLookingIsTold(t *testing.T) {
	r := result()
	r.ID = "7"
	for look, want := range map[*Looking]string{nil: "", {CPUSeconds: 1.9, LoadingSeconds: 0.45, ForecastingSeconds: 1.1, CPUs: 2, GaveWay: true}: "looking             1.90 s of CPU time " +
		"on 2 CPUs: 450 ms to load the probe and 1.10 s to forecast, giving way to other work\n"} {
		var b, doc bytes.Buffer
		if err := errors.Join(Write(&b, r, look, page.Style{Width: page.Unbounded}), JSON(&doc, r, look)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "looking ") != (want != "") {
			t.Errorf("want %q in\n%s", want, b.String())
		}
		if strings.Contains(doc.String(), `"looking": null`) != (look == nil) {
			t.Errorf("%s", doc.String())
		}
	}
}
