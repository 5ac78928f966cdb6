package confusion

import (
	"math"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

func result(seed uint64, named diagnose.Cause, with float64, parts ...Ingredient) Result {
	return Result{Seed: seed, Named: []diagnose.Cause{named, diagnose.None}, Window: 2, Harm: with, Ingredients: parts, Limit: 1}
}

func TestTruth(t *testing.T) {
	pool, near := Ingredient{diagnose.Pool, 0.5, 0.4}, Ingredient{diagnose.Neighbours, 0.5, 2.9}
	for name, c := range map[string]struct {
		r        Result
		cause    diagnose.Cause
		lead     float64
		unscored string
	}{
		"clear": {result(1, diagnose.Pool, 3.1, pool, near), diagnose.Pool, 13.5, ""},
		"no lead": {result(1, diagnose.Pool, 3.1, pool, Ingredient{diagnose.Burst, 0, 0.9}),
			diagnose.Pool, 1.23, "no clear lead"},
		"one ingredient":           {result(1, diagnose.Pool, 3.1, pool), diagnose.Pool, math.Inf(1), ""},
		"the other makes it worse": {result(1, diagnose.Pool, 3.1, pool, Ingredient{diagnose.Burst, 0, 5}), diagnose.Pool, math.Inf(1), ""},
		"harmless":                 {result(1, diagnose.None, 0.41, pool), diagnose.Pool, math.Inf(1), "no removal helps"},
		"only worse":               {result(1, diagnose.None, 0.3, pool), "", math.Inf(1), "no removal helps"},
	} {
		cause, lead := c.r.Truth()
		if cause != c.cause || math.Abs(lead-c.lead) > 0.01 || c.r.Unscored() != c.unscored {
			t.Errorf("%s: %s by %.2f, %q", name, cause, lead, c.r.Unscored())
		}
	}
	foreign := result(1, diagnose.Pool, 3.1, pool)
	foreign.Steal = 0.03
	if foreign.Unscored() != "steal" {
		t.Errorf("steal: %q", foreign.Unscored())
	}
	foreign.Steal, foreign.Strangers = 0, 0.07
	if foreign.Unscored() != "strangers" || !foreign.Again() {
		t.Errorf("strangers: %q", foreign.Unscored())
	}
}

func TestMarkdown(t *testing.T) {
	pool := Ingredient{diagnose.Pool, 0.5, 0.4}
	results := []Result{
		result(3, diagnose.Burst, 3.1, pool), result(1, diagnose.Pool, 3.1, pool), result(2, diagnose.Pool, 0.41, pool),
	}
	text := Markdown(results, About{"6.18", 2, 200})
	rest := text
	for _, want := range []string{"3 random mixes of 200 wanted, on Linux 6.18 with 2 CPUs", "2 are scored: 1 right (50 %)",
		"| truth \\ named first | burst | pool | right |", "| pool | 1 | **1** | 1 of 2 |", "Not scored: no removal helps: 1."} {
		i := strings.Index(rest, want)
		if i < 0 {
			t.Fatalf("%q is missing in\n%s", want, text)
		}
		rest = rest[i+len(want):]
	}
	if Markdown(nil, About{}) == "" {
		t.Error("nothing for no mixes")
	}
	if page := Markdown([]Result{result(1, "new", 3.1, pool), result(2, diagnose.None, 3.1, pool)}, About{}); !strings.Contains(page,
		"named first | none | new | right |") {
		t.Errorf("a cause that is not in the order has no column:\n%s", page)
	}
}
