package policy

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// row is a row with a judged latency in ms, and an interval of a tenth around it.
func row(r forecast.Remedy, ms float64, reserved float64) forecast.Row {
	made := forecast.Row{Remedy: r, Reserved: &reserved}
	if reserved == 0 {
		made.Reserved = nil
	}
	if ms > 0 {
		made.Judged, made.JudgedRange = new(ms), &forecast.Range{Low: ms * 0.9, High: ms * 1.1}
	}
	if r.Modelled() {
		made.JudgedRange = nil
	}
	return made
}

// wide is the row with an interval from half to twice its latency.
func wide(r forecast.Row) forecast.Row {
	r.JudgedRange = &forecast.Range{Low: *r.Judged / 2, High: *r.Judged * 2}
	return r
}

// unknown is the row without an interval.
func unknown(r forecast.Row) forecast.Row {
	r.JudgedRange = nil
	return r
}

// others is the row with a second kind of requests, of that p99.
func others(r forecast.Row, ms float64) forecast.Row {
	r.Kinds = []forecast.KindFigures{{P50: 1, High: *r.Judged}, {P50: 1, High: ms}}
	return r
}

// twoKinds is the forecast of requests of two kinds, of which the first is judged.
func twoKinds(f *forecast.Forecast) *forecast.Forecast {
	checks, inferences := forecast.Kind{To: 2 * time.Millisecond}, forecast.Kind{From: 2 * time.Millisecond}
	f.Judged = &forecast.Judged{Of: forecast.OfRequests, Kind: checks, Quantile: 0.99}
	f.Kinds = []forecast.KindSeen{{Kind: checks, Samples: 400, Quantile: 0.99}, {Kind: inferences, Samples: 90, Quantile: 0.95}}
	return f
}

// middle is the row with a median.
func middle(r forecast.Row, ms float64) forecast.Row {
	r.JudgedP50 = new(ms)
	return r
}

// made is a forecast of a container with a limit. The first row is "none".
func made(limit float64, rows ...forecast.Row) *forecast.Forecast {
	f := &forecast.Forecast{Window: 10 * time.Second, Limit: limit, CPUs: 8, Rows: rows}
	if rows[0].Judged != nil {
		f.Judged = &forecast.Judged{Of: forecast.OfPool, Pool: "get", Quantile: 0.99}
	}
	f.Rows[0].Figures.Stopped = 5 * time.Second
	f.Rows[0].Figures.CPU = time.Duration(limit * float64(f.Window))
	if rows[0].Judged != nil {
		f.Rows[0].Figures.CPU /= 2 // it waits between requests
	}
	return f
}

// usingAll is the forecast of a container that used its whole limit.
func usingAll(f *forecast.Forecast) *forecast.Forecast {
	f.Rows[0].Figures.CPU = time.Duration(f.Limit * float64(f.Window))
	return f
}

// The remedies as rows.
func none(ms float64, limit float64) forecast.Row {
	return row(forecast.Remedy{Name: forecast.None}, ms, limit)
}

func burst(ms float64, limit float64) forecast.Row {
	return row(forecast.Remedy{Name: forecast.Burst, Burst: 100 * time.Millisecond}, ms, limit)
}

func narrow(ms float64, limit float64) forecast.Row {
	return row(forecast.Remedy{Name: forecast.Narrow}, ms, limit)
}

func period(ms float64, limit float64) forecast.Row {
	return row(forecast.Remedy{Name: forecast.Period, Period: 10 * time.Millisecond}, ms, limit)
}

func pin(ms float64, cpus int) forecast.Row {
	return row(forecast.Remedy{Name: forecast.Pin, CPUs: cpus}, ms, float64(cpus))
}

func raise(ms, factor, limit float64) forecast.Row {
	return row(forecast.Remedy{Name: forecast.Raise, Factor: factor}, ms, limit*factor)
}

func weight(ms float64) forecast.Row { return row(forecast.Remedy{Name: forecast.Weight}, ms, 0) }

func pools(ms float64, limit float64) forecast.Row {
	return row(forecast.Remedy{Name: forecast.Pools, CPUs: 2}, ms, limit)
}

func inCode(ms float64, limit float64) forecast.Row {
	return row(forecast.Remedy{Name: forecast.Budget, CPUs: 1}, ms, limit)
}

// stopped is a row with stops left, inASecond one with a period of 1 s.
func stopped(r forecast.Row, d time.Duration) forecast.Row { r.Figures.Stopped = d; return r }
func inASecond(r forecast.Row) forecast.Row                { r.Remedy.Period = time.Second; return r }

// The first cases are the measured ones that the rule must get right (docs/results, and real services).
func TestChoose(t *testing.T) {
	objective := func(d time.Duration) *forecast.Objective {
		return &forecast.Objective{Objective: objective.Objective{Quantile: 0.99, Bound: d}}
	}
	mayRaise := Terms{May: []remedy.Kind{remedy.Raise}}
	for _, tc := range []struct {
		name      string
		f         *forecast.Forecast
		objective *forecast.Objective
		terms     Terms
		answer    Answer
		remedy    string
		certain   bool
		says      string
	}{
		{"nginx with gzip: burst, though raise is best",
			made(0.6, none(115, 0.6), pin(121, 1), narrow(110, 0.6), burst(66, 0.6), raise(3, 1.5, 0.6), weight(2)),
			nil, Terms{}, AnswerRemedy, forecast.Burst, true, "p99 of pool get from 115 ms to 66.0 ms (59.4 to 72.6 ms)"},
		{"redis beside its saver: only a pin helps, which is more CPU",
			made(0.5, none(53, 0.5), pin(4, 1), narrow(52, 0.5), burst(50, 0.5), weight(3)),
			nil, Terms{}, AnswerMoreCPU, forecast.Pin, true, "0.5 more than the limit"},
		{"the same, and a pin may be", made(0.5, none(53, 0.5), pin(4, 1), narrow(52, 0.5), burst(50, 0.5)),
			nil, Terms{May: []remedy.Kind{remedy.Pin}}, AnswerRemedy, forecast.Pin, true, ""},
		{"pools, twice the load: burst", made(20, none(72, 20), pin(131, 20), narrow(114, 20), burst(14, 20)), nil,
			Terms{}, AnswerRemedy, forecast.Burst, true, ""},
		{"seed 003: pin", made(8, none(99, 8), pin(11, 8), narrow(80, 8), burst(98, 8)), nil, Terms{}, AnswerRemedy,
			forecast.Pin, true, ""},
		{"a tie goes to the smaller intervention", made(2, none(90, 2), pin(10, 2), narrow(10.5, 2), burst(10.9, 2)),
			nil, Terms{}, AnswerRemedy, forecast.Burst, true, ""},
		{"but not where it is still stopped, and a longer burst is not",
			made(2, none(90, 2), stopped(burst(10, 2), 60*time.Millisecond), inASecond(burst(10, 2))),
			nil, Terms{}, AnswerRemedy, forecast.Burst, true, "period 1s"},
		{"a longer period, where it used its whole limit: only a trial tells", usingAll(made(1, none(54, 1), narrow(20, 1),
			inASecond(burst(5, 1)))), nil, Terms{}, AnswerRemedy, forecast.Narrow, true, ""},
		{"the same, and a trial follows", usingAll(made(1, none(54, 1), narrow(20, 1), inASecond(burst(5, 1)))), nil, Terms{Trial: true},
			AnswerRemedy, forecast.Burst, true, "period 1s"},
		{"nothing helps", made(1, none(10, 1), pin(12, 1), narrow(10, 1), burst(9.5, 1)), nil, Terms{}, AnswerLeave, "",
			false, "no remedy shortens p99"},
		{"less than half a millisecond is nothing", made(1, none(0.6, 1), burst(0.2, 1)), nil, Terms{}, AnswerLeave, "", false, ""},
		{"only more CPU helps: the least of it", made(1, none(90, 1), pin(95, 1), raise(40, 1.5, 1), raise(5, 2, 1),
			weight(4)), nil, Terms{}, AnswerMoreCPU, forecast.Raise, true, "it grants 1.5 CPUs, 0.5 more than the limit"},
		{"what would help at the same CPU cannot be done here", made(1, none(73, 1), narrow(39, 1), raise(5, 2, 1)), nil,
			Terms{Refused: map[int]string{1: "no sched_ext"}}, AnswerMoreCPU, forecast.Raise, true,
			"no remedy at the same CPU that can be done here shortens it"},
		{"what would help at the same CPU harms others",
			twoKinds(made(1, others(none(63, 1), 900), others(narrow(18, 1), 1400), others(raise(5, 2, 1), 900))), nil,
			Terms{}, AnswerMoreCPU, forecast.Raise, true, "no remedy at the same CPU shortens it without harm to others"},
		{"what was not tried may help all the same", made(1, none(90, 1), narrow(99, 1), period(95, 1), raise(5, 2, 1)), nil,
			Terms{}, AnswerMoreCPU, forecast.Raise, true, "forecasts of narrow and period can be too dark " +
				"where long runs share the pool or pod: 'unthrottle fix' tries what keeps the limit first"},
		{"what was tried is not named", made(1, none(90, 1), narrow(99, 1), raise(5, 2, 1)), nil,
			Terms{Tried: map[int]string{1: "worse"}}, AnswerMoreCPU, forecast.Raise, true, "it grants 2 CPUs, 1 more than the limit"},
		{"raise may be: it is the best", made(1, none(90, 1), burst(60, 1), raise(5, 2, 1)), nil, mayRaise,
			AnswerRemedy, forecast.Raise, true, ""},
		{"a smaller pool is the only help", made(1, none(90, 1), burst(89, 1), pools(20, 1), raise(5, 2, 1)), nil,
			Terms{}, AnswerSetting, forecast.Pools, false, "modelled"},
		{"a change of the program is the only help", made(1, none(90, 1), burst(89, 1), inCode(20, 1), raise(5, 2, 1)),
			nil, Terms{}, AnswerSetting, forecast.Budget, false, "a change of the program would"},
		{"a setting goes before a change of the program that helps as much",
			made(1, none(90, 1), inCode(19.5, 1), pools(20, 1)), nil, Terms{}, AnswerSetting, forecast.Pools, false, "a smaller pool"},
		{"a remedy goes before a change of the program", made(1, none(90, 1), burst(20, 1), inCode(19, 1)), nil,
			Terms{}, AnswerRemedy, forecast.Burst, true, ""},
		{"an uncertain gain is said", made(1, none(90, 1), wide(burst(60, 1))), nil, Terms{}, AnswerRemedy,
			forecast.Burst, false, "reaches above leaving it"},
		{"a gain without an interval is said", made(1, none(90, 1), unknown(burst(60, 1))), nil, Terms{}, AnswerRemedy,
			forecast.Burst, false, "error is not known"},
		{"nothing waits: more CPU", made(1, none(0, 1), pin(0, 1), raise(0, 1.5, 1), raise(0, 2, 1)), nil, Terms{},
			AnswerMoreCPU, forecast.Raise, true, "only more CPU brings more work"},
		{"narrow harms the other kind", twoKinds(made(1, others(none(63, 1), 900), others(narrow(18, 1), 1400), others(burst(32, 1), 900))),
			nil, Terms{}, AnswerRemedy, forecast.Burst, true, "p99 of requests of less than 2.0 ms of CPU time from 63.0 ms to 32.0 ms"},
		{"nothing else helps: it is left", twoKinds(made(1, others(none(63, 1), 900), others(narrow(18, 1), 1400))),
			nil, Terms{}, AnswerLeave, "", false, "no remedy shortens p99"},
		{"a little longer is no harm", twoKinds(made(1, others(none(63, 1), 900), others(narrow(18, 1), 1100))), nil,
			Terms{}, AnswerRemedy, forecast.Narrow, true, ""},
		{"less than half a millisecond is no harm",
			twoKinds(made(1, others(none(50, 1), 0.1), others(narrow(5, 1), 0.4))), nil, Terms{}, AnswerRemedy, forecast.Narrow, true, ""},
		{"a tail pressed together may lift the middle", made(1, middle(none(58, 1), 2), middle(narrow(17, 1), 9)), nil,
			Terms{}, AnswerRemedy, forecast.Narrow, true, ""},
		{"but not by more than it gains",
			made(1, middle(none(58, 1), 2), middle(narrow(40, 1), 9), middle(burst(45, 1), 2)), nil, Terms{},
			AnswerRemedy, forecast.Burst, true, ""},

		{"objective met as it is", made(1, none(15, 1), burst(3, 1)), objective(20 * time.Millisecond), Terms{},
			AnswerLeave, "", true, "met as it is"},
		{"the cheapest that meets it, not the best", made(1, none(90, 1), burst(15, 1), narrow(12, 1), pin(2, 1)),
			objective(20 * time.Millisecond), Terms{}, AnswerRemedy, forecast.Burst, true, ""},
		{"the objective decides, whatever else waits",
			twoKinds(made(1, others(none(90, 1), 31), others(narrow(12, 1), 53))), objective(20 * time.Millisecond),
			Terms{}, AnswerRemedy, forecast.Narrow, true, ""},
		{"its interval must meet it", made(1, none(90, 1), burst(19, 1), narrow(12, 1)),
			objective(20 * time.Millisecond), Terms{}, AnswerRemedy, forecast.Narrow, true, ""},
		{"within the error", made(1, none(90, 1), burst(19, 1), narrow(30, 1)), objective(20 * time.Millisecond),
			Terms{}, AnswerRemedy, forecast.Burst, false, "within the forecast's error"},
		{"met by more CPU only", made(1, none(90, 1), burst(60, 1), raise(30, 1.5, 1), raise(5, 2, 1)),
			objective(20 * time.Millisecond), Terms{}, AnswerMoreCPU, forecast.Raise, true, "it grants 2 CPUs"},
		{"met by nothing", made(1, none(90, 1), burst(60, 1), raise(50, 2, 1)), objective(20 * time.Millisecond),
			Terms{}, AnswerRemedy, forecast.Burst, false, "no remedy meets the objective of 20.0 ms; burst"},

		{"a row that cannot be done here", made(2, none(90, 2), burst(10, 2), narrow(40, 2)), nil,
			Terms{Refused: map[int]string{1: "no burst here"}}, AnswerRemedy, forecast.Narrow, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.f.Objective = tc.objective
			got := Choose(tc.f, tc.terms)
			chosen := ""
			if got.Row >= 0 {
				chosen = tc.f.Rows[got.Row].Remedy.Name
			}
			if got.Answer != tc.answer || chosen != tc.remedy || got.Certain != tc.certain || !strings.Contains(got.Why, tc.says) {
				t.Errorf("%s %q, certain %v: %s", got.Answer, chosen, got.Certain, got.Why)
			}
		})
	}
}

// A burst has nothing to spend where the whole limit is used, whatever the replay of the recorded work says.
func TestChooseNoBurstThatCannotBeFilled(t *testing.T) {
	f := made(0.8, none(62, 0.8), burst(32, 0.8), narrow(40, 0.8))
	f.Rows[0].Figures.CPU = time.Duration(0.795 * float64(f.Window))
	if got := Choose(f, Terms{}); got.Row != 2 || !strings.Contains(got.Refused[1], "it used 0.795 CPUs of 0.8 CPUs on average") {
		t.Errorf("%+v", got)
	}
}

// A smaller pool that helps more than the remedy is advice beside it, and no more than that.
func TestChooseAdvisesAPool(t *testing.T) {
	for _, tc := range []struct {
		pool   float64
		advice string
	}{{20, "pool of 2: p99 of pool get from 90.0 ms to 20.0 ms (modelled, a setting of the service)"}, {70, ""}} {
		got := Choose(made(1, none(90, 1), burst(60, 1), pools(tc.pool, 1)), Terms{})
		if got.Answer != AnswerRemedy || got.Row != 1 || got.Advice != tc.advice {
			t.Errorf("%+v", got)
		}
	}
}

func TestChooseNothingOfAReplayThatDiffers(t *testing.T) {
	f := made(1, none(90, 1), burst(10, 1))
	f.Check.Judged = forecast.Figure{Recorded: new(10.0), Replayed: new(90.0)}
	if got := Choose(f, Terms{}); got.Answer != AnswerUnknown || got.Row >= 0 || !strings.Contains(got.Why, "the judged latency") {
		t.Errorf("%+v", got)
	}
	if got := Choose(f, Terms{Trial: true}); got.Answer != AnswerRemedy || got.Row != 1 || got.Certain ||
		!strings.Contains(got.Why, "the judged latency, so its forecasts mean little: a trial tells") {
		t.Errorf("of a trial: %+v", got)
	}
	f = made(1, none(90, 1), burst(10, 1))
	f.Check.Stopped = forecast.Figure{Recorded: new(1.0), Replayed: new(9.0)} // says nothing against the latency
	if got := Choose(f, Terms{}); got.Answer != AnswerRemedy || !got.Certain {
		t.Errorf("stopped time differs: %+v", got)
	}
}

// Where the replay has lost the latency, a trial takes what ends the stops.
func TestChooseOfALatencyThatIsLost(t *testing.T) {
	lost := func(recorded float64) *forecast.Forecast {
		f := made(1, none(1, 1), burst(1, 1), narrow(1, 1))
		f.Rows[0].Figures.CPU = f.Window / 2
		for i := range f.Rows {
			f.Rows[i].Judged = new(0.0)
		}
		f.Check.Judged = forecast.Figure{Recorded: &recorded, Replayed: new(0.0)}
		f.Rows[0].Figures.Stopped, f.Rows[1].Figures.Stopped, f.Rows[2].Figures.Stopped = f.Window/4, f.Window/6, f.Window/50
		return f
	}
	got := Choose(lost(56), Terms{Trial: true})
	if got.Answer != AnswerRemedy || got.Row != 2 || got.Certain || len(got.Next) != 0 ||
		!strings.Contains(got.Why, "stopped for") || !strings.Contains(got.Why, "a trial tells") {
		t.Errorf("%+v", got)
	}
	differs := lost(56)
	differs.Check.Stopped = forecast.Figure{Recorded: new(9.0), Replayed: new(1.0)}
	for name, c := range map[string]Choice{"no trial": Choose(lost(56), Terms{}),
		"the stopped time differs too": Choose(differs, Terms{Trial: true})} {
		if c.Answer == AnswerRemedy {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A remedy that is asked for by name is not applied without a word on its forecast.
func TestOfAsked(t *testing.T) {
	differs := made(1, none(90, 1), burst(10, 1))
	differs.Check.Judged = forecast.Figure{Recorded: new(10.0), Replayed: new(90.0)}
	for _, tc := range []struct {
		f    *forecast.Forecast
		says string
		not  string
	}{
		{made(1, none(90, 1), burst(60, 1)), "p99 of pool get from 90.0 ms to 60.0 ms (54.0 to 66.0 ms)", "interval"},
		{made(1, none(90, 1), wide(burst(60, 1))), "the forecast's interval reaches above leaving it", ""},
		{made(1, none(90, 1), unknown(burst(60, 1))), "the forecast's error is not known", ""},
		{made(0.5, none(90, 0.5), pin(120, 1)), "to 120 ms (108 to 132 ms); it grants 1 CPU, 0.5 more than the " +
			"limit; the forecast's interval reaches", ""},
		{made(1, none(0, 1), burst(0, 1)), "says nothing about latency", ""},
		{differs, "so its forecasts mean little", ""},
	} {
		if got := ofAsked(tc.f, 1); !strings.Contains(got, tc.says) || tc.not != "" && strings.Contains(got, tc.not) {
			t.Errorf("%q, want %q and not %q in it", got, tc.says, tc.not)
		}
	}
}

// Whatever a forecast says, a row that is applied is better than leaving it, is possible, and grants no more than
// the limit unless it may; every other row has a reason.
func TestChooseNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Float64Range(0.01, 500)
		limit := rapid.SampledFrom([]float64{0.5, 1, 2.5, 4}).Draw(t, "limit")
		f := made(limit, none(ms.Draw(t, "none"), limit), burst(ms.Draw(t, "burst"), limit), narrow(ms.Draw(t, "narrow"), limit),
			pin(ms.Draw(t, "pin"), int(math.Ceil(limit))), raise(ms.Draw(t, "raise"), 1.5, limit), weight(ms.Draw(t, "weight")),
			pools(ms.Draw(t, "pools"), limit))
		terms := Terms{Refused: map[int]string{}}
		for i := 1; i < len(f.Rows); i++ {
			if rapid.Bool().Draw(t, "refused") {
				terms.Refused[i] = "not here"
			}
		}
		if rapid.Bool().Draw(t, "may") {
			terms.May = []remedy.Kind{remedy.Raise}
		}
		if rapid.Bool().Draw(t, "objective") {
			f.Objective = &forecast.Objective{
				Objective: objective.Objective{Quantile: 0.99, Bound: time.Duration(ms.Draw(t, "bound") * float64(time.Millisecond))}}
		}
		got := Choose(f, terms)
		for _, i := range append([]int{got.Row}, got.Next...) {
			if i < 0 || got.Answer != AnswerRemedy && i == got.Row {
				continue
			}
			r := &f.Rows[i]
			better := *r.Judged < *f.Rows[0].Judged
			granted := r.Reserved != nil && *r.Reserved <= limit+leastExtra || r.Remedy.Name == forecast.Raise && len(terms.May) > 0
			if !better || !granted || terms.Refused[i] != "" {
				t.Fatalf("row %d (%s): better %v, granted %v, refused %q: %+v", i, r.Remedy.Name, better, granted, terms.Refused[i], got)
			}
		}
		for _, n := range got.Not {
			if n.Why == "" {
				t.Fatalf("row %d has no reason", n.Row)
			}
		}
		if got.Why == "" {
			t.Fatal("no reason")
		}
	})
}

// Each row that harms the rest says what it harms.
func TestHarmIsTold(t *testing.T) {
	f := twoKinds(made(1, middle(others(none(60, 1), 31), 2), middle(others(narrow(4.1, 1), 53), 2), middle(others(burst(40, 1), 31), 12)))
	got := map[int]string{}
	for _, n := range Choose(f, Terms{}).Not {
		got[n.Row] = n.Why
	}
	if got[1] != "it harms the rest: p95 of requests of 2.0 ms of CPU time and more from 31.0 ms to 53.0 ms" ||
		got[2] != "it lifts the middle: the median from 2.00 ms to 12.0 ms" {
		t.Errorf("got %v", got)
	}
}

// A service that is stopped for less than a hundredth of the time is left alone, unless that is what its slowest requests are made of.
func TestFewStopsThatHitRequests(t *testing.T) {
	burst := forecast.Remedy{Name: forecast.Burst, Burst: 80 * time.Millisecond}
	for name, c := range map[string]struct {
		burst float64
		of    string
		want  Answer
	}{
		"a burst takes a tail of requests to a third": {2.9, forecast.OfRequests, AnswerRemedy},
		"a little off":             {7, forecast.OfRequests, AnswerLeave},
		"wake-ups are no requests": {2.9, forecast.OfPool, AnswerLeave},
	} {
		f := made(0.8, none(9.6, 0.8), row(burst, c.burst, 0.8))
		f.Rows[0].Figures.Stopped, f.Judged.Of = 90*time.Millisecond, c.of
		if got := Choose(f, Terms{}); got.Answer != c.want {
			t.Errorf("%s: %s, %s", name, got.Answer, got.Why)
		}
	}
	f := made(0.8, none(9.6, 0.8), wide(row(burst, 4.8, 0.8))) // it may not help at all
	f.Rows[0].Figures.Stopped, f.Judged.Of = 90*time.Millisecond, forecast.OfRequests
	if got := Choose(f, Terms{}); got.Answer != AnswerLeave {
		t.Errorf("not sure: %s, %s", got.Answer, got.Why)
	}
}

// Counters that show next to no stopped time do not end a fix whose recording shows that the slowest requests wait for it.
func TestProposeWhereFewStopsHitRequests(t *testing.T) {
	burst := forecast.Remedy{Name: forecast.Burst, Burst: 80 * time.Millisecond}
	known := func(ms float64, change func(*forecast.Forecast)) *Known {
		f := made(0.8, none(9.6, 0.8), row(burst, ms, 0.8))
		f.Rows[0].Figures.Stopped, f.Judged.Of = 90*time.Millisecond, forecast.OfRequests
		change(f)
		return &Known{Forecast: f}
	}
	asIs := func(*forecast.Forecast) {}
	differs := func(f *forecast.Forecast) {
		f.Check.Judged = forecast.Figure{Recorded: new(10.0), Replayed: new(90.0)}
	}
	for name, c := range map[string]struct {
		known *Known
		wish  Wish
		want  remedy.Kind
		says  string
	}{
		"a burst takes the tail to a third": {known(2.9, asIs), Wish{Auto: true}, remedy.Burst,
			"stopped for at most 2 ms of each second, and its slowest requests wait for that; burst"},
		"and is asked for": {known(2.9, asIs), Wish{Request: remedy.Request{Kind: remedy.Burst}},
			remedy.Burst, "asked for"},
		"a little off":       {known(7, asIs), Wish{Auto: true}, "", "nothing to fix"},
		"the replay differs": {known(2.9, differs), Wish{Auto: true}, "", "nothing to fix"},
		"it was tried": {
			&Known{Forecast: known(2.9, asIs).Forecast, Tried: map[int]string{1: "no change"}}, Wish{Auto: true}, "", "nothing to fix"},
		"a bound above the default is meant": {known(2.9, asIs), Wish{Auto: true, Bound: 0.05}, "", "nothing to fix"},
		"nothing was forecast":               {&Known{}, Wish{Auto: true}, "", "nothing to fix"},
	} {
		f, a := facts(t, 4, 0.8)
		got, err := Propose(seen(a, 0.8, 0.4, 2*time.Millisecond), f, c.wish, c.known)
		var kind remedy.Kind
		if got.Plan != nil {
			kind = got.Plan.Remedy
		}
		if err != nil || kind != c.want || !strings.Contains(got.Why, c.says) {
			t.Errorf("%s: %q, %s, %v", name, kind, got.Why, err)
		}
	}
}
