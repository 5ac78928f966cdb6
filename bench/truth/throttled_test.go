package main

import (
	"testing"

	"github.com/unthrottle/unthrottle/bench/services"
)

// withShares is a case whose runs left alone and without a limit had these p99s, and this many of 100 periods throttled.
func withShares(throttled uint64, alone, none float64) caseRun {
	k := caseRun{Complete: true, Look: &look{}, Fix: &fixed{}, Variants: []variant{{Name: leaveIt}, {Name: noLimit}}}
	for i := range 3 {
		more := float64(i)
		k.Runs = append(k.Runs,
			oneRun{Variant: leaveIt, Round: i + 1, P50: new(1.0), P99: new(alone + more), Throttled: throttled + uint64(i), Periods: 100},
			oneRun{Variant: noLimit, Round: i + 1, P50: new(1.0), P99: new(none)})
	}
	return k
}

func TestThrottledShares(t *testing.T) {
	sick := services.Case{Limit: 1, Causes: []string{"burst"}}
	testCases := []services.Case{sick, sick, sick, {Healthy: true}}
	runs := []caseRun{withShares(11, 20, 10), withShares(30, 100, 10), withShares(60, 50, 10), withShares(90, 5, 5)}
	got := throttledOf(testCases, runs)
	if got == nil {
		t.Fatal("three services are compared")
	}
	// Shares 12, 31 and 61 %, p99 2.1, 10.1 and 5.1 times that without a limit; a healthy one does not count.
	if got.Services != 3 || got.Across != 0.5 || got.Band != 2 || got.Least != 2.1 || got.Most != 10.1 ||
		got.Within != 1 || got.Measured != 3 || got.Negative != 0 {
		t.Errorf("%+v", *got)
	}
	if one := throttledOf(testCases[:1], runs[:1]); one != nil {
		t.Errorf("of one service nothing is compared: %+v", *one)
	}
}
