package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFrugalIsUndone: the threads' timers may be late while the agent runs, and no longer.
func TestFrugalIsUndone(t *testing.T) {
	// Threads come and go meanwhile; the first one stays.
	first := filepath.Join("/proc", "self", "timerslack_ns")
	slack := func() string {
		text, err := os.ReadFile(first)
		if err != nil {
			t.Skipf("this kernel tells no timer slack: %v", err)
		}
		return strings.TrimSpace(string(text))
	}
	before := slack()
	if err := os.WriteFile(first, []byte(before), 0); err != nil {
		t.Skipf("the timer slack of another thread needs CAP_SYS_NICE; run as root: %v", err)
	}
	restore := frugal()
	during := slack()
	restore()
	if after := slack(); during != "1000000" || after != before {
		t.Errorf("%s ns before, %s while frugal, %s after; want 1000000 and then what was before", before, during, after)
	}
}
