package study

import (
	"reflect"
	"testing"
	"text/template"
)

func TestPage(t *testing.T) {
	got := Fill("# {{.A}}\n{{row .A 3 nothing}}\n",
		template.FuncMap{"row": Row, "nothing": func() string { return "" }}, struct{ A string }{"a|b\nc"})
	if want := "# a|b\nc\n| a\\|b c | 3 | |\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if Decimals(nil, 2) != "-" || Decimals(new(1.25), 1) != "1.2" {
		t.Error("what was not measured has a figure, or what was has another")
	}
	defer func() {
		if recover() == nil {
			t.Error("a template of other values")
		}
	}()
	Fill("{{.B}}", nil, struct{ A string }{})
}

func TestTurns(t *testing.T) {
	for _, c := range []struct {
		rounds, n int
		want      [][]int
	}{
		{2, 3, [][]int{{0, 1, 2}, {1, 2, 0}}},
		{3, 2, [][]int{{0, 1}, {1, 0}, {0, 1}}},
		{2, 6, [][]int{{0, 1, 2, 3, 4, 5}, {3, 4, 5, 0, 1, 2}}},
		{2, 0, make([][]int, 2)},
	} {
		got := make([][]int, c.rounds)
		for round, variant := range Turns(c.rounds, c.n) {
			got[round-1] = append(got[round-1], variant)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d rounds of %d: %v", c.rounds, c.n, got)
		}
	}
	for round, variant := range Turns(9, 9) {
		if round == 2 {
			if variant != 1 {
				t.Errorf("the second round begins with %d", variant)
			}
			break
		}
	}
}

func TestSpread(t *testing.T) {
	if got := SpreadOf([]float64{3, 1, 2}); got != (Spread{2, 1, 3, 3}) {
		t.Errorf("%+v", got)
	}
	if got := SpreadOf(nil); got != (Spread{}) {
		t.Errorf("%+v of nothing", got)
	}
}
