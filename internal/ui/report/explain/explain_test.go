package explain

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

const ms = time.Millisecond

// example is the container of the verdict that the project promises: 32 threads that run 11 wide and spend the
// 200 ms quota in 19 ms.
func example() diagnose.Explanation {
	row := func(start time.Duration) diagnose.Row {
		r := diagnose.Row{Start: start, Length: 100 * ms, Throttled: true}
		for i := range 50 {
			c := diagnose.Cell{MeanWidth: 11, MostWidth: 13, Wanted: 20}
			switch {
			case i > 45:
				c = diagnose.Cell{}
			case i > 9:
				c = diagnose.Cell{Stopped: 1, Wanted: 20}
			}
			r.Cells = append(r.Cells, c)
		}
		return r
	}
	return diagnose.Explanation{
		Target: "shop/cart", Start: time.Date(2026, 11, 21, 3, 12, 0, 0, time.UTC), Window: 10 * time.Second,
		Verdict: "32 threads of pool http-worker-* ran 11 wide and spent the 200 ms quota in 19 ms; then the " +
			"container was stopped for 81 ms, 6.2 times a second.",
		Cause: diagnose.Burst,
		Causes: []diagnose.RankedCause{
			{Cause: diagnose.Burst, Stopped: new(5022 * ms), Wall: new(5022 * ms), Waited: new(61 * time.Second),
				Evidence: "mean use 1.40 of 2 CPUs (70 %), up to 13 at once"},
			{Cause: diagnose.Pool, Stopped: new(1200 * ms), Wall: new(1200 * ms),
				Evidence: "netty-eventloop was stopped for http-worker-*"},
		},
		LimitCPUs: new(2.0), Periods: new(uint64(100)), ThrottledPeriods: new(uint64(62)),
		Stopped: new(5022 * ms), StoppedIntervals: new(62), MeanWidth: new(1.4),
		Width: []diagnose.Bar{{CPUs: 0, Time: 8200 * ms}, {CPUs: 1, Time: 500 * ms}, {CPUs: 11, Time: 1000 * ms},
			{CPUs: 13, Time: 300 * ms}},
		Wanted: []diagnose.Bar{{CPUs: 0, Time: 3500 * ms}, {CPUs: 1, Time: 500 * ms}, {CPUs: 20, Time: 5500 * ms},
			{CPUs: 32, Time: 500 * ms}},
		SampledWidth: []diagnose.Bar{{CPUs: 0, Time: 8300 * ms}, {CPUs: 11, Time: 1700 * ms}},
		Timeline:     []diagnose.Row{row(4000 * ms), row(4100 * ms), row(200 * ms)},
		Overview: []diagnose.Stretch{
			{Length: 4 * time.Second, Cell: diagnose.Cell{MeanWidth: 0.5, MostWidth: 4, Wanted: 1}},
			{Start: 4 * time.Second, Length: 4 * time.Second, Cell: diagnose.Cell{MeanWidth: 3, MostWidth: 13, Stopped: 0.9, Wanted: 20}},
			{Start: 8 * time.Second, Length: 2 * time.Second, Cell: diagnose.Cell{MeanWidth: 1, MostWidth: 2, Wanted: 1}},
		},
		Pools: []diagnose.PoolUse{
			{Name: "http-worker-*", Process: "java", Threads: 32, CPU: 13 * time.Second, CPUThrottled: new(12 * time.Second), Widest: 13,
				Library: "Akka HTTP", Setting: "akka.actor.default-dispatcher.fork-join-executor.parallelism-max",
				Advice: "Akka HTTP: 32 threads and 13 at once are more than the limit of 2 CPUs: set " +
					"akka.actor.default-dispatcher to 2 (default 64).", OnIOThread: true,
				Delay:    &diagnose.Quantiles{Count: 900, P50: 2 * ms, P90: 80 * ms, P99: 81 * ms, Max: 99 * ms},
				Response: &diagnose.Quantiles{Count: 900, P50: 20 * ms, P90: 90 * ms, P99: 110 * ms, Max: 180 * ms},
				Waiting:  map[diagnose.Reason]time.Duration{diagnose.OwnQuota: 90 * time.Second, diagnose.OwnThreads: 3 * time.Second}},
			{Name: "netty-eventloop", Process: "java", Threads: 2, CPU: time.Second, CPUThrottled: new(200 * ms), Widest: 1,
				Waiting: map[diagnose.Reason]time.Duration{diagnose.OwnQuota: 1200 * ms, diagnose.ByNeighbours: 40 * ms}},
		},
		Requests: &requests.Requests{Seen: true, Count: 2412, Unanswered: 3, P50: 12 * ms, P90: 70 * ms, P99: 96 * ms, Max: 180 * ms,
			Slowest: []requests.Request{
				{Begin: 4010 * ms, Took: 180 * ms, Segments: []requests.Segment{
					{Length: 40 * ms, Kind: requests.Busy, Thread: 5, Pool: "netty-eventloop"},
					{Begin: 40 * ms, Length: 90 * ms, Kind: requests.Stopped, Thread: 5, Pool: "netty-eventloop",
						Quota: "/shop/cart", Own: true},
					{Begin: 130 * ms, Length: 20 * ms, Kind: requests.Waited, Thread: 7, Pool: "http-worker-*"},
					{Begin: 150 * ms, Length: 30 * ms, Kind: requests.Ran, Thread: 7, Pool: "http-worker-*"}}},
				{Begin: 9 * ms, Took: 99 * ms, Segments: []requests.Segment{
					{Length: 90 * ms, Kind: requests.Stopped, Thread: 5, Pool: "netty-eventloop", Quota: "/shop"},
					{Begin: 90 * ms, Length: 9 * ms, Kind: requests.Slept, Thread: 7, Pool: "http-worker-*"}}},
			}},
		CostOfWidth: &diagnose.WidthCost{Narrow: 10 * ms, Wide: 14 * ms, NarrowRuns: 100, WideRuns: 800},
		Waiting: map[diagnose.Reason]time.Duration{diagnose.OwnQuota: 91200 * ms, diagnose.OwnThreads: 3 * time.Second,
			diagnose.ByNeighbours: 40 * ms},
		Neighbours: []diagnose.NeighbourUse{
			{Name: "batch/etl", Waited: 40 * ms, CPU: 3 * time.Second, Throttled: new(true), Toggling: new(true)},
			{Name: "not-waited-for", Waited: 2 * time.Microsecond, CPU: time.Second},
		},
		RunnablePerCore: new(9.25),
		Checks: []diagnose.Check{
			{Name: "width against time on CPUs", ErrorRatio: new(0.0001), OK: true},
			{Name: "width against the usage counter", Note: "3.2 % steal on the CPUs used"},
			{Name: "wanted against the probe", ErrorRatio: new(0.034)},
		},
		LostEvents:  new(uint64(7)),
		NotMeasured: []string{"steal: /proc/stat has none"},
	}
}

func written(t *testing.T, e diagnose.Explanation, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, e, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// inOrder fails unless the texts stand in s one behind the other, wherever lines break.
func inOrder(t *testing.T, s string, texts ...string) {
	t.Helper()
	rest := strings.Join(strings.Fields(s), " ")
	for _, text := range texts {
		i := strings.Index(rest, text)
		if i < 0 {
			t.Fatalf("%q is missing, or not where it belongs, in\n%s", text, s)
		}
		rest = rest[i+len(text):]
	}
}

func TestSaysEverythingInItsOrder(t *testing.T) {
	s := written(t, example(), Options{Style: page.Style{Width: 100}})
	inOrder(t, s,
		"shop/cart: 10 s from 2026-11-21 03:12:00 UTC, limit 2 CPUs", "62 of 100", "stopped for 5.02 s",
		"32 threads of pool http-worker-* ran 11 wide",
		"1. burst (5.02 s): mean use 1.40", "2. pool (1.20 s): netty",
		"in use (width)", "sampled every 10 ms", "wanted by threads",
		"82.0 %", "83.0 %", "35.0 %", "mean 1", "limit 2", "11", "10.0 %",
		"The worst stretch", "4000.0 ms ██████████░░░", "....", "throttled", "4100.0 ms", "200.0 ms",
		"Who spent it:", "http-worker-* (java)", "32", "13 s 12 s 13 81 ms 110 ms", "netty-eventloop (java)",
		"http-worker-*: Akka HTTP: 32 threads", "set akka.actor", "made for I/O",
		"Cost of width: a run takes 10 ms", "14 ms", "40 % more",
		"Requests: 2412 requests answered, p50 12 ms, p99 96 ms, longest 180 ms", "3 more had no answer", "b its thread was busy",
		"4010.0 ms bbbbbbbbb░░░░░░░░░░░░░░░░░░░░wwwwrrrrrrr 180 ms",
		"stopped by its own quota 90 ms, its thread was busy with others 40 ms",
		"(netty-eventloop, http-worker-*)", "9.0 ms", "stopped by the quota of /shop 90 ms, slept 9.0 ms",
		"Where waiting went", "own quota", "own threads", "neighbours", "http-worker-* (java)", "90 s", "all",
		"batch/etl: held CPUs for 3 s, 40 ms of thread time", "throttled itself and swings",
		"per reserved core", "9.25",
		"Checks: 1 of 3 cross-checks passed.", "usage counter: not judged: 3.2 % steal", "wanted against the probe: FAILED, off by 3.40 %",
		"7 events were lost", "Not measured:", "steal: /proc/stat has none")
	ended := example()
	ended.EndedEarly = "its cgroup was removed"
	inOrder(t, written(t, ended, Options{Style: page.Style{Width: 100}}), "Ended early, after 10 s: its cgroup was removed.", "32 threads")
	if strings.Contains(s, "not-waited-for") {
		t.Error("a neighbour is named for which nothing waited")
	}
	if !strings.Contains(s, "throttled\n\n   200.0 ms") {
		t.Error("two stretches are not told apart")
	}
	for i, line := range strings.Split(s, "\n") {
		if n := text.Width(line); n > 100 {
			t.Errorf("line %d is %d wide: %s", i+1, n, line)
		}
	}
	if strings.Contains(s, "\x1b") {
		t.Error("colours where none were asked for")
	}
}

// Tables that do not fit become lists; no table and no drawing is wider than the terminal.
func TestFitsTheTerminal(t *testing.T) {
	for columns := 40; columns <= 140; columns++ {
		e := example()
		// Words longer than a line are left whole: they are to be copied.
		e.Pools[0].Advice, e.Pools[0].Setting = "", ""
		s := written(t, e, Options{Style: page.Style{Width: columns}})
		for i, line := range strings.Split(s, "\n") {
			if n := text.Width(line); n > columns {
				t.Errorf("%d columns: line %d is %d wide: %s", columns, i+1, n, line)
			}
		}
		inOrder(t, s, "in use", "wanted", "limit 2", "The worst stretch", "http-worker-*", "13 s", "12 s", "81 ms", "110 ms",
			"own quota", "90 s", "9.25")
	}
}

func TestInASCII(t *testing.T) {
	for i, r := range written(t, example(), Options{Style: page.Style{Width: 90, ASCII: true}}) {
		if r > unicode.MaxASCII {
			t.Fatalf("%q at %d", r, i)
		}
	}
}

// What was not measured is left out or "-"; nothing of it looks like a zero.
func TestOfCountersAlone(t *testing.T) {
	e := diagnose.Explanation{Target: "a", Window: time.Second, Verdict: "Throttled.", Cause: diagnose.Burst,
		Causes:      []diagnose.RankedCause{{Cause: diagnose.Burst, Evidence: "12 of 100 periods"}},
		NotMeasured: []string{"width: BPF was refused"}}
	s := written(t, e, Options{})
	for _, never := range []string{"mean use", "at once", "Who spent", "waiting went", "stopped for", "NaN", "Inf", "Checks"} {
		if strings.Contains(s, never) {
			t.Errorf("%q in\n%s", never, s)
		}
	}
	inOrder(t, s, "no limit", "Throttled.", "1. burst: 12 of 100", "Not measured:", "BPF was refused")
	item := keys(t, e)
	for _, key := range []string{"width", "wanted", "width_sampled_10ms", "waiting", "stopped_seconds", "limit_cpus",
		"periods", "mean_width", "start",
		"pools", "neighbours", "lost_events", "checks", "throttled_periods", "stopped_intervals", "timeline",
		"cost_of_width", "runnable_per_reserved_core"} {
		if value, ok := item[key]; !ok || string(value) != "null" {
			t.Errorf("%s is %s, want null", key, value)
		}
	}
}

func keys(t *testing.T, e diagnose.Explanation) map[string]json.RawMessage {
	t.Helper()
	var b bytes.Buffer
	if err := JSON(&b, e, nil); err != nil {
		t.Fatal(err)
	}
	var item map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &item); err != nil {
		t.Fatal(err)
	}
	return item
}

// The keys of the contract, with what stands in them.
func TestJSONContract(t *testing.T) {
	item := keys(t, example())
	for key, want := range map[string]string{
		"cause": `"burst"`, "limit_cpus": "2", "periods": "100", "throttled_periods": "62", "stopped_seconds": "5.022", "lost_events": "7",
	} {
		if string(item[key]) != want {
			t.Errorf("%s is %s, want %s", key, item[key], want)
		}
	}
	for key, want := range map[string][]string{
		"causes": {"cause", "stopped_seconds", "evidence"},
		"width":  {"cpus", "seconds"},
		"wanted": {"cpus", "seconds"},
		"pools": {"name", "threads", "cpu_seconds", "cpu_seconds_in_throttled_periods", "widest", "library",
			"setting", "advice", "delay_p99_ms"},
		"neighbours": {"name"},
		"checks":     {"name", "error_ratio", "ok"},
	} {
		var list []map[string]any
		if err := json.Unmarshal(item[key], &list); err != nil || len(list) == 0 {
			t.Errorf("%s: %v, %d entries", key, err, len(list))
			continue
		}
		for _, k := range want {
			if _, ok := list[0][k]; !ok {
				t.Errorf("%s has no %s", key, k)
			}
		}
	}
	var waiting map[string]*float64
	if err := json.Unmarshal(item["waiting"], &waiting); err != nil || *waiting["own_quota"] != 91.2 || len(waiting) != len(reasons) ||
		waiting["steal"] != nil {
		t.Errorf("waiting is %s, %v", item["waiting"], err)
	}
	var pools []struct {
		Delay    *float64 `json:"delay_p99_ms"`
		Advice   *string  `json:"advice"`
		Response *float64 `json:"response_p99_ms"`
	}
	if err := json.Unmarshal(item["pools"], &pools); err != nil {
		t.Fatal(err)
	}
	if *pools[0].Delay != 81 || pools[1].Delay != nil || pools[1].Advice != nil || *pools[0].Response != 110 {
		t.Errorf("pools are %+v", pools)
	}
}

// hostile is a name as a stranger may choose it.
const hostile = "evil\x1b[2J\n\t\u202e<script>alert(1)</script>\xff\"'&"

func hostileExplanation() diagnose.Explanation {
	e := example()
	e.Target, e.Verdict = hostile, "pool "+hostile
	e.Causes[0].Evidence = hostile
	e.Pools[0].Name, e.Pools[0].Process = hostile, hostile
	e.Pools[0].Advice, e.Pools[0].Library, e.Pools[0].Setting = hostile, hostile, hostile
	e.Neighbours[0].Name = hostile
	e.NotMeasured[0] = hostile
	e.Checks[1].Note = hostile
	for _, q := range e.Requests.Slowest {
		q.Segments[0].Pool, q.Segments[0].Quota = hostile, hostile
	}
	return e
}

func TestEscapesNames(t *testing.T) {
	for i, r := range written(t, hostileExplanation(), Options{Style: page.Style{Width: 100}}) {
		if r != '\n' && (unicode.IsControl(r) || r == '\u202e' || r == unicode.ReplacementChar) {
			t.Fatalf("%q at %d", r, i)
		}
	}
	keys(t, hostileExplanation())
}

// Names come here safe already: escaping their backslashes once more would tell of other names.
func TestJSONEscapesOnce(t *testing.T) {
	e := example()
	e.Pools[0].Name = text.Sanitize("worker\xff\xfe", 0)
	var pools []struct{ Name string }
	if err := json.Unmarshal(keys(t, e)["pools"], &pools); err != nil {
		t.Fatal(err)
	}
	if want := `worker\xff\xfe`; pools[0].Name != want {
		t.Errorf("the pool is called %s, want %s", pools[0].Name, want)
	}
}

// Whatever the figures are, nothing fails, and no histogram loses time.
func TestTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bars := func(name string) []diagnose.Bar {
			var all []diagnose.Bar
			for range rapid.IntRange(0, 40).Draw(t, name) {
				all = append(all, diagnose.Bar{CPUs: rapid.IntRange(0, 9000).Draw(t, "cpus"),
					Time: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "time"))})
			}
			return all
		}
		e := diagnose.Explanation{Target: rapid.String().Draw(t, "target"), Width: bars("width"), Wanted: bars("wanted"),
			MeanWidth: new(rapid.Float64Range(0, 9000).Draw(t, "mean")), Window: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "window"))}
		if rapid.Bool().Draw(t, "limited") {
			e.LimitCPUs = new(rapid.Float64Range(0.01, 1e9).Draw(t, "limit"))
		}
		var out bytes.Buffer
		if err := Write(&out, e, Options{Style: page.Style{Width: rapid.IntRange(0, 400).Draw(t, "columns")}}); err != nil {
			t.Fatal(err)
		}
		if err := JSON(&out, e, nil); err != nil {
			t.Fatal(err)
		}
		bins := binsOf(&e)
		sum, want := time.Duration(0), time.Duration(0)
		for i, b := range bins {
			sum += b.Width
			if b.From > b.To || i > 0 && b.From != bins[i-1].To+1 {
				t.Fatalf("row %d is %d to %d", i, b.From, b.To)
			}
		}
		for _, b := range e.Width {
			want += b.Time
		}
		if sum != want || len(bins) > 60 {
			t.Fatalf("%v of %v in %d rows", sum, want, len(bins))
		}
	})
}

func TestTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 3 * time.Microsecond: "<0.01 ms", 340 * time.Microsecond: "0.34 ms", 1234 * time.Microsecond: "1.2 ms",
		81 * ms: "81 ms", 999600 * time.Microsecond: "1.00 s", time.Second: "1 s", 2310 * ms: "2.31 s", 90*time.Second + 30*ms: "90.0 s",
	} {
		if got := text.Duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

// Where few stops are no cause, and a remedy halves what requests take all the same, nothing says that nothing is wrong.
func TestFewStops(t *testing.T) {
	e := example()
	e.Cause, e.Causes, e.Verdict, e.Stopped = diagnose.None, nil, "Nothing wrong: a quota held it back for only 65 ms of 10 s.", new(65*ms)
	f := &forecast.Forecast{Window: 10 * time.Second,
		Rows: []forecast.Row{{Remedy: forecast.Remedy{Name: forecast.None}},
			{Remedy: forecast.Remedy{Name: forecast.Burst, Burst: 80 * ms}}}}
	for answer, want := range map[policy.Answer]string{policy.AnswerRemedy: "only 65 ms of 10 s, but the slowest of " +
		"its requests waited for that", policy.AnswerLeave: "Nothing wrong"} {
		e, o := e, Options{Style: page.Style{Width: 200}}
		o.Recommend(&e, f, &policy.Choice{Answer: answer, Row: 1, Why: "why"})
		var b strings.Builder
		if err := Write(&b, e, o); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s: %v\n%s", answer, err, b.String())
		}
		if state, _ := stateOf(&e, o.fewStops(&e)); (state == "few stops") != (answer == policy.AnswerRemedy) {
			t.Errorf("%s: %q", answer, state)
		}
	}
}
