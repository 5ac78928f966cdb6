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

func TestOnlyWhatNothingCanWriteIsGivenBack(t *testing.T) {
	maps := `00400000-00e4f000 r-xp 00000000 fe:00 17 /opt/a b/unthrottle
00e4f000-018f2000 r--p 00a4f000 fe:00 17 /opt/a b/unthrottle
018f2000-01a18000 rw-p 014f2000 fe:00 17 /opt/a b/unthrottle
01a18000-03a5f000 rw-p 00000000 00:00 0
03a60000-03a61000 r--s 00000000 fe:00 17 /opt/a b/unthrottle
34dc00000-34ec00000 r--p 00000000 00:00 0 [vvar]
7f0000000000-7f0000001000 r-xp 00000000 fe:00 18 /opt/other/unthrottle
`
	got := unwritable(strings.NewReader(maps), "/opt/a b/unthrottle")
	if len(got) != 2 || got[0] != (mapping{0x400000, 0xe4f000}) || got[1] != (mapping{0xe4f000, 0x18f2000}) {
		t.Errorf("%x", got)
	}
	if err := trim(); err != nil {
		t.Error(err)
	}
}
