package spent

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
)

// burn uses CPU time on this thread.
func burn(d time.Duration) {
	for end := Clock(unix.CLOCK_THREAD_CPUTIME_ID) + d; Clock(unix.CLOCK_THREAD_CPUTIME_ID) < end; {
	}
}

func TestTimeIsSpentOnItsPart(t *testing.T) {
	s := &CPU{}
	const ms = time.Millisecond
	list := s.Listing(func() ([]container.Container, error) { burn(20 * ms); return nil, nil })
	s.Step(func() {
		_, _ = list()
		burn(30 * ms)
	})
	s.Do(Metrics, func() { burn(10 * ms) })
	now := s.Seconds()
	used := Clock(unix.CLOCK_PROCESS_CPUTIME_ID).Seconds()
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
	later := s.Seconds()
	for name, was := range now {
		if later[name] < was {
			t.Errorf("%s fell from %v to %v", name, was, later[name])
		}
	}
}
