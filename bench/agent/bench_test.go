package main

import (
	"strings"
	"testing"
)

func TestTargetsAreJudged(t *testing.T) {
	var tb table
	tb.add(scenario{200, 20}, []result{
		{name: variantHot, cost: 0.51, rss: 26e6, polled: 20},
		{name: variantBareHot, cost: 0.25, rss: 1e6, polled: 20},
		{name: variantAgent, cost: 0.4, rss: 20e6, polled: -1},
	})
	tb.add(scenario{200, 200}, []result{{name: variantHot, cost: 1.4, rss: 20e6}, {name: variantBareHot, cost: 1}})
	var b strings.Builder
	tb.print(&b)
	for _, want := range []string{"within 2x of the bare loop 2.04 at most 2 MISSED", "minute 0.51 at most 0.5 MISSED",
		"resident MB 26 at most 25 MISSED", "minute 0.4 at most 0.5 met", "minute 1.4 at most 1.5 met", "loop 1.4 at most 2 met"} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	var o output
	for range 100 {
		if n, err := o.Write(make([]byte, 10<<10)); n != 10<<10 || err != nil {
			t.Fatal(n, err)
		}
	}
	if len(o.String()) != 64<<10 {
		t.Errorf("%d bytes kept", len(o.String()))
	}
}
