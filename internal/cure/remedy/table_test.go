package remedy_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Each list of remedies in the program is the table's.
func lists(t *testing.T) map[string][]string {
	t.Helper()
	of := map[string][]string{}
	for _, k := range remedy.Kinds() {
		of["kinds"] = append(of["kinds"], string(k))
		rules := "version: 1\nrules:\n  - remedy: " + string(k) + "\n"
		if _, err := policy.ParseRules([]byte(rules)); err != nil {
			t.Errorf("the agent's rules do not take %s: %v", k, err)
		}
	}
	of["words"] = strings.Split(strings.ReplaceAll(remedy.Names(), " or ", ", "), ", ")
	for _, a := range remedy.Abilities(remedy.Everything()) {
		if !strings.Contains(a.What, " ") {
			of["check"] = append(of["check"], a.What)
		}
	}
	for _, k := range strings.Split(policy.MayNames(), ", ") {
		if _, err := policy.ParseMay([]string{k}); err != nil {
			t.Error(err)
		}
		of["may"] = append(of["may"], k)
	}
	for _, s := range remedy.Settings() {
		of["flags"] = append(of["flags"], s.Flag)
	}
	for _, e := range remedy.Effects() {
		of["rows"] = append(of["rows"], e.Name)
	}
	return of
}

func TestListsAreTheTables(t *testing.T) {
	of := lists(t)
	for _, name := range []string{"words", "check"} {
		if !slices.Equal(of[name], of["kinds"]) {
			t.Errorf("%s: %q, but the table has %q", name, of[name], of["kinds"])
		}
	}
	// A scenario's remedies are the rows of forecasts.
	var kinds []string
	for _, k := range scenario.Kinds() {
		kinds = append(kinds, string(k))
	}
	slices.Sort(kinds)
	if rows := slices.Sorted(slices.Values(of["rows"])); !slices.Equal(rows, kinds) {
		t.Errorf("scenarios have %q, forecasts %q", kinds, rows)
	}
	if standard := forecast.Effects(); !slices.Equal(standard, remedy.Effects()) {
		t.Error("a forecast without a table has other rows than the table")
	}
	for _, r := range remedy.All() {
		if found, ok := remedy.Find(r.Kind); !ok || found.Kind != r.Kind {
			t.Errorf("%s is not found", r.Kind)
		}
	}
}

// A remedy that is added as one value is in every list, and can be forecast, chosen, planned, applied and read again.
func TestOneRowIsARemedy(t *testing.T) {
	defer remedy.With(remedy.Sample(&forecast.Effect{
		Name: "sample", NoQuota: true,
		Rows: func(c forecast.Container) []forecast.Remedy {
			return []forecast.Remedy{{Name: "sample", Period: c.Quota.Period / 2}}
		},
		Simulate: func(s *scenario.Scenario, at forecast.Cgroups, _ forecast.Remedy) {
			s.Cgroups[at.Binding].Limit.Quota = bandwidth.NoQuota
		},
		Price: func(forecast.Remedy, forecast.Pricing) string { return "a sample" },
	}))()
	for name, all := range lists(t) {
		want := "sample"
		if name == "flags" {
			want = "sample-depth"
		}
		if !slices.Contains(all, want) {
			t.Errorf("%s: %q", name, all)
		}
	}
	if !slices.ContainsFunc(remedy.Abilities(remedy.Everything()),
		func(a features.Ability) bool { return a.What == "sample --sample-depth" && a.Can }) {
		t.Error("check has no row for its setting")
	}
	facts, web, apply := remedy.Modelled(t)
	made, err := policy.Forecast(load(t), nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	used, limit, stopped := 0.5, 1.0, 500*time.Millisecond
	seen := observe.Observation{Container: web, Window: time.Second, UsedCPUs: &used, LimitCPUs: &limit,
		StoppedLow: &stopped, StoppedHigh: &stopped}
	propose := func(known *policy.Known) policy.Proposal {
		p, err := policy.Propose(seen, facts(), policy.Wish{Auto: true}, known)
		if err != nil || p.Plan == nil || p.Plan.Remedy != "sample" {
			t.Fatalf("%s, %v", p.Why, err)
		}
		return p
	}
	propose(nil)
	p := propose(&policy.Known{Forecast: made})
	if p.Request.Kind != "sample" || !strings.Contains(p.Why, "sample: p99") || p.Plan.Expected.StoppedPerSecondHigh == nil {
		t.Errorf("%+v, %s", p.Request, p.Why)
	}
	apply(*p.Plan)
	if held, err := remedy.Decode(facts().Held[0], ""); err != nil || held.To != 1.5 {
		t.Errorf("in force: %+v, %v", held.Notes, err)
	}
}

// load is a recording of bursts that are wider than a limit of 1 CPU.
func load(t *testing.T) *forecast.Load {
	t.Helper()
	s := recordingtest.New(4).Process("java").Limit(100*time.Millisecond, 100*time.Millisecond)
	w := s.Threads("http-worker", 16)
	s.Repeat(40, 250*time.Millisecond, func(at time.Duration) { s.Work(at, 8*time.Millisecond, w...) })
	r := s.Run(10 * time.Second)
	var file bytes.Buffer
	if err := r.Write(&file); err != nil {
		t.Fatal(err)
	}
	l, err := forecast.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
