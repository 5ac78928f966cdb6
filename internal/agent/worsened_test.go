package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// A remedy of the agent's own with which its container is stopped longer than before is found, over ten minutes and not for one bad one.
func TestWorsened(t *testing.T) {
	held := func(change func(*txn.InForce)) txn.InForce {
		h := txn.InForce{ID: "1", Target: "/a", By: "agent", Outcome: &txn.Outcome{Before: &txn.Figures{StoppedPerSecondHigh: new(0.2)}}}
		if change != nil {
			change(&h)
		}
		return h
	}
	for name, c := range map[string]struct {
		held    txn.InForce
		stopped func(minute int) float64
		want    bool
	}{
		"longer":             {held(nil), func(int) float64 { return 0.4 }, true},
		"as before":          {held(nil), func(int) float64 { return 0.2 }, false},
		"one bad minute":     {held(nil), func(m int) float64 { return map[bool]float64{true: 0.9, false: 0.1}[m == 3] }, false},
		"somebody else's":    {held(func(h *txn.InForce) { h.By = "unthrottle fix, user root" }), func(int) float64 { return 0.4 }, false},
		"on trial":           {held(func(h *txn.InForce) { h.Trial = &txn.Trial{} }), func(int) float64 { return 0.4 }, false},
		"before is not told": {held(func(h *txn.InForce) { h.Outcome = &txn.Outcome{} }), func(int) float64 { return 0.4 }, false},
	} {
		ch := newChooser(rules(nil), "")
		ch.by = "agent"
		var found []worse
		for second := range int(watchedFor / time.Second) {
			o := seen("/a", c.stopped(second/60))
			o.UsedCPUs = new(0.5)
			found = append(found, ch.worsened([]observe.Observation{o}, byTarget([]txn.InForce{c.held}))...)
		}
		if (len(found) > 0) != c.want || c.want && (!strings.Contains(found[0].because, "stopped for 400 ms/s over 10 min") ||
			*found[0].after.UsedCPUs < 0.49) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
