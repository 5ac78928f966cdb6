package rows

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/cure/incode"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// What to write into the program stands after the sentence that recommends it, and in JSON. Without such advice there is none.
func TestWhatToWriteIsShown(t *testing.T) {
	lines := incode.Of([]string{forecast.LanguageGo})
	f := &forecast.Forecast{Rows: []forecast.Row{{Remedy: forecast.Remedy{Name: forecast.Budget, CPUs: 1}}}}
	c := &policy.Choice{Answer: policy.AnswerSetting, Row: 0, Why: "a change of the program would", Write: lines}
	got := Sentences(c)
	if len(got) < 2 || !strings.Contains(got[1], "docs/howto/in-your-go-code.md") ||
		!slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "budget.Process().Do(") }) {
		t.Errorf("%q", got)
	}
	for want, c := range map[string]*policy.Choice{`"language":"Go"`: c, `"write":[]`: {Row: -1}} {
		text, err := json.Marshal(NewRecommended(f, c))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s, %v", want, text, err)
		}
	}
}

// A figure of which forecasts of its kind seldom came close is marked, and the mark explained; others are not.
func TestSeldomCloseIsMarked(t *testing.T) {
	f := &forecast.Forecast{Judged: &forecast.Judged{Of: forecast.OfRequests, Quantile: 0.99}, Rows: []forecast.Row{
		{Judged: new(40.0), Known: &forecast.Known{Close: 9, All: 10}},
		{Judged: new(12.0), Known: &forecast.Known{Close: 6, All: 40}},
		{Judged: new(7.0)},
	}}
	for i, want := range []string{"40", "? 12", "7"} {
		if got := Latency(&f.Rows[i]); !strings.HasPrefix(got, want) {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
	if got := Unsure(f); !strings.Contains(got, "of 40 such forecasts 6 came within a quarter") || Cases(f) != "70 % of cases" {
		t.Errorf("%q, %q", got, Cases(f))
	}
	f.Rows = f.Rows[:1]
	if got := Unsure(f); got != "" {
		t.Errorf("nothing is marked: %q", got)
	}
}
