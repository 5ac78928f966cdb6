package demo

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

func TestSpentOfChangedCPUsIsUnknown(t *testing.T) {
	type times = map[int]procfs.Times
	two := times{0: {All: time.Second}, 1: {All: time.Second}}
	for name, after := range map[string]times{
		"gone": {0: {All: time.Second}}, "other": {0: {All: time.Second}, 2: {All: time.Second}},
		"backwards": {0: {}, 1: {All: time.Second}}, "none": nil,
	} {
		if _, _, ok := spent(two, after); ok {
			t.Errorf("%s: known", name)
		}
	}
	later := times{0: {All: 2 * time.Second, Steal: 100 * tms}, 1: {All: 2 * time.Second, Idle: 500 * tms}, 7: {All: time.Hour}}
	if shares := busyShares(two, later, time.Second); len(shares) != 2 || shares[0] != 1 || shares[1] != 0.5 {
		t.Errorf("shares %v", shares)
	}
	delete(later, 7)
	if used, stolen, ok := spent(two, later); !ok || math.Abs(used-1.4) > 1e-9 || stolen != 0.1 {
		t.Errorf("used %v, stolen %v, %v", used, stolen, ok)
	}
}
