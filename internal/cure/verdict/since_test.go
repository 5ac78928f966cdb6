package verdict

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/txn"
)

// What counters gained since a remedy was kept is told as stopped time, and held against what it was before.
func TestStopsSince(t *testing.T) {
	kept := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	counted := func(after time.Duration, levels ...txn.Counters) *txn.Counted {
		return &txn.Counted{At: kept.Add(after), Levels: levels}
	}
	level := func(id, periods, throttled uint64, own, local float64) txn.Counters {
		return txn.Counters{CgroupID: id, Limited: true, Periods: periods, ThrottledPeriods: throttled,
			ThrottledSeconds: own, LocalSeconds: &local}
	}
	before := &txn.Figures{StoppedPerSecondHigh: new(0.05)}
	for name, c := range map[string]struct {
		was, is   *txn.Counted
		low, high float64
		longer    bool
		none      bool
	}{
		"no stop": {was: counted(0, level(1, 10, 5, 4, 4)), is: counted(time.Minute, level(1, 610, 5, 4, 4))},
		"400 ms in 10 s, on 4 CPUs": {was: counted(0, level(1, 10, 5, 1, 1)), is: counted(10*time.Second, level(1, 110, 15, 1.4, 1.4)),
			low: 0.01, high: 0.04},
		"longer than before": {was: counted(0, level(1, 0, 0, 0, 0)), is: counted(10*time.Second, level(1, 10, 8, 4, 4)),
			low: 0.1, high: 0.4, longer: true},
		"by its pod's quota": {was: counted(0, level(1, 0, 0, 0, 0), level(2, 0, 0, 0, 0)),
			is: counted(10*time.Second, level(1, 10, 0, 0, 4), level(2, 10, 8, 9, 9)), low: 0.1, high: 0.4, longer: true},
		"another container under its path": {was: counted(0, level(1, 0, 0, 0, 0)),
			is: counted(time.Minute, level(9, 10, 8, 4, 4)), none: true},
		"counters that went back": {was: counted(0, level(1, 9, 9, 9, 9)),
			is: counted(time.Minute, level(1, 10, 8, 4, 4)), none: true},
		"a moment ago": {was: counted(0, level(1, 0, 0, 0, 0)),
			is: counted(time.Second, level(1, 10, 8, 4, 4)), none: true},
		"a level that cannot be read any more": {was: counted(0, level(1, 0, 0, 0, 0), level(2, 0, 0, 0, 0)),
			is: counted(time.Minute, level(1, 10, 8, 4, 4)), none: true},
		"never counted": {is: counted(time.Minute, level(1, 10, 8, 4, 4)), none: true},
	} {
		got := StopsSince(c.was, c.is, before, 4)
		switch {
		case c.none && got != nil || !c.none && got == nil:
			t.Errorf("%s: %+v", name, got)
		case got != nil && (got.StoppedPerSecondLow != c.low || got.StoppedPerSecondHigh != c.high || got.Longer != c.longer):
			t.Errorf("%s: %+v, want %v to %v, longer %v", name, got, c.low, c.high, c.longer)
		}
	}
	if StoppedLonger(nil, 1) || StoppedLonger(&txn.Figures{}, 1) {
		t.Error("longer than what was not measured")
	}
}
