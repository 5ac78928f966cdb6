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
	if len(got) < 2 || !strings.Contains(got[1], "docs/howto/in-your-go-code.md") || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "budget.Process().Do(") }) {
		t.Errorf("%q", got)
	}
	for want, c := range map[string]*policy.Choice{`"language":"Go"`: c, `"write":[]`: {Row: -1}} {
		text, err := json.Marshal(NewRecommended(f, c))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s, %v", want, text, err)
		}
	}
}
