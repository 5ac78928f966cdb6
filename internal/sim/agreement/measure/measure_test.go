package measure

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

func TestNoise(t *testing.T) {
	// 2 CPUs for 10 s: 12 s idle, 1 s stolen; the run itself used 6 s, others 1 s.
	n := noise(times{}, times{Times: procfs.Times{All: 20 * time.Second, Idle: 12 * time.Second, Steal: time.Second}, own: 6 * time.Second})
	if math.Abs(n.Steal-0.05) > 1e-9 || math.Abs(n.Others-0.05) > 1e-9 || n.TooMuch() == "" {
		t.Errorf("%+v", n)
	}
	// A count of ticks may be below what was used.
	if n := noise(times{}, times{Times: procfs.Times{All: 20 * time.Second, Idle: 15 * time.Second},
		own: 6 * time.Second}); n.Others != 0 || n.TooMuch() != "" {
		t.Errorf("%+v", n)
	}
	// Counted exactly, that is what holds.
	zero, used := time.Duration(0), 7*time.Second
	if n := noise(times{used: &zero}, times{Times: procfs.Times{All: 20 * time.Second}, used: &used,
		own: 6 * time.Second}); math.Abs(n.Others-0.05) > 1e-9 {
		t.Errorf("%+v", n)
	}
	if n := noise(times{}, times{}); n.TooMuch() == "" {
		t.Errorf("nothing was measured: %+v", n)
	}
}

// What this process does itself is no noise.
func TestOwn(t *testing.T) {
	before, err := own()
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
	}
	if after, err := own(); err != nil || after <= before {
		t.Errorf("from %v to %v: %v", before, after, err)
	}
}
