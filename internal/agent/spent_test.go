package agent

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
)

// burn uses CPU time on this thread.
func burn(d time.Duration) {
	for end := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) + d; cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) < end; {
	}
}

func TestTimeIsSpentOnItsPart(t *testing.T) {
	s := &spent{}
	const ms = time.Millisecond
	list := s.listing(func() ([]container.Container, error) { burn(20 * ms); return nil, nil })
	s.step(func() {
		_, _ = list()
		burn(30 * ms)
	})
	s.do(partMetrics, func() { burn(10 * ms) })
	now := s.seconds()
	used := cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID).Seconds()
	if now["naming"] < 0.02 || now["sampling"] < 0.03 || now["metrics"] < 0.01 || now["acting"] != 0 {
		t.Errorf("20 ms naming, 30 sampling, 10 metrics, none acting: %v", now)
	}
	sum := 0.0
	for _, seconds := range now {
		sum += seconds
	}
	if sum > used {
		t.Errorf("the parts took %v s together, the process %v", sum, used)
	}
	later := s.seconds()
	for name, was := range now {
		if later[name] < was {
			t.Errorf("%s fell from %v to %v", name, was, later[name])
		}
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
