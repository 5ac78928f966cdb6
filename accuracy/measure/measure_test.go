package measure

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/scenario"
)

func TestParse(t *testing.T) {
	got, err := parse("cpu  100 0 50 1000 20 1 2 30 7 0\ncpu0 1 2\n")
	want := times{all: 12030 * time.Millisecond, idle: 10200 * time.Millisecond, steal: 300 * time.Millisecond}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "intr 1 2 3 4 5 6 7 8 9\n", "cpu 1 2 3\n", "cpu 1 2 3 4 x 6 7 8\n", "cpu 1 2 3 -4 5 6 7 8\n"} {
		if got, err := parse(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestNoise(t *testing.T) {
	// 2 CPUs for 10 s: 12 s idle, 1 s stolen; the run itself used 6 s, others 1 s.
	n := noise(times{}, times{all: 20 * time.Second, idle: 12 * time.Second, steal: time.Second}, 6*time.Second)
	if math.Abs(n.Steal-0.05) > 1e-9 || math.Abs(n.Others-0.05) > 1e-9 || n.TooMuch() == "" {
		t.Errorf("%+v", n)
	}
	// A count of ticks may be below what was used.
	if n := noise(times{}, times{all: 20 * time.Second, idle: 15 * time.Second}, 6*time.Second); n.Others != 0 || n.TooMuch() != "" {
		t.Errorf("%+v", n)
	}
	// Counted exactly, that is what holds.
	zero, used := time.Duration(0), 7*time.Second
	if n := noise(times{used: &zero}, times{all: 20 * time.Second, used: &used}, 6*time.Second); math.Abs(n.Others-0.05) > 1e-9 {
		t.Errorf("%+v", n)
	}
	if n := noise(times{}, times{}, 0); n.TooMuch() == "" {
		t.Errorf("nothing was measured: %+v", n)
	}
}

func TestUsed(t *testing.T) {
	s := scenario.Scenario{Cgroups: []scenario.Cgroup{{Name: "pod", Parent: -1}, {Name: "a", Parent: 0}, {Name: "b", Parent: -1}}}
	o := scenario.Outcome{Cgroups: map[string]scenario.CgroupOutcome{"pod": {UsageSeconds: 2}, "a": {UsageSeconds: 1.5}, "b": {UsageSeconds: 1}}}
	if got := used(&s, o); got != 3*time.Second {
		t.Error(got)
	}
}
