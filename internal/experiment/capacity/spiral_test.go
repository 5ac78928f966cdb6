package capacity

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

func TestRecovery(t *testing.T) {
	line := func(good ...uint32) []loadgen.SlotResult {
		var results []loadgen.SlotResult
		for _, g := range good {
			results = append(results, loadgen.SlotResult{Intended: 10, Good: g})
		}
		return results
	}
	for name, c := range map[string]struct {
		timeline []loadgen.SlotResult
		want     time.Duration
		ok       bool
	}{
		"at once":          {line(10, 10, 10), 0, true},
		"after two slots":  {line(0, 0, 10, 10, 10), 2 * loadgen.Slot, true},
		"never":            {line(0, 0, 0), 0, false},
		"not to the end":   {line(10, 10, 10, 0), 0, false},
		"a single bad one": {line(0, 10, 9, 9, 10), loadgen.Slot, true},
		"nothing came":     {line(), 0, false},
	} {
		got, ok := recovery(c.timeline, recovered)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %v, %v, want %v, %v", name, got, ok, c.want, c.ok)
		}
	}
}
