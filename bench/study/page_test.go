package study

import (
	"reflect"
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	var p Page
	p.Line("# %d", 1)
	table := p.Table("name", "p99 ms:", "")
	table.Row("a|b\nc", Decimals(new(1.25), 1), 3)
	table.Row("short")
	table.Rowf("%s | %.1f %% | %d of %d", "x | y", 12.34, 1, 2)
	want := "# 1\n\n| name | p99 ms | |\n|---|---:|---|\n| a\\|b c | 1.2 | 3 |\n| short | | |\n| x \\| y | 12.3 % | 1 of 2 |\n"
	if p.String() != want {
		t.Errorf("%s\nwant\n%s", p.String(), want)
	}
	if Decimals(nil, 2) != "-" {
		t.Error("what was not measured has a figure")
	}
	for what, row := range map[string]func(){"cells": func() { table.Row(1, 2, 3, 4) }, "arguments": func() { table.Rowf("%d", 1, 2) }} {
		func() {
			defer func() {
				if why, _ := recover().(string); !strings.Contains(why, what) && !strings.Contains(why, "row of 4") {
					t.Errorf("too many %s: %q", what, why)
				}
			}()
			row()
		}()
	}
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
