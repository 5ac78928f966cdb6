package measure

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/host"
	"github.com/unthrottle/unthrottle/scenario"
)

func TestNoise(t *testing.T) {
	// 2 CPUs for 10 s: 12 s idle, 1 s stolen; the run itself used 6 s, others 1 s.
	n := noise(times{}, times{Times: host.Times{All: 20 * time.Second, Idle: 12 * time.Second, Steal: time.Second}}, 6*time.Second)
	if math.Abs(n.Steal-0.05) > 1e-9 || math.Abs(n.Others-0.05) > 1e-9 || n.TooMuch() == "" {
		t.Errorf("%+v", n)
	}
	// A count of ticks may be below what was used.
	if n := noise(times{}, times{Times: host.Times{All: 20 * time.Second, Idle: 15 * time.Second}}, 6*time.Second); n.Others != 0 || n.TooMuch() != "" {
		t.Errorf("%+v", n)
	}
	// Counted exactly, that is what holds.
	zero, used := time.Duration(0), 7*time.Second
	if n := noise(times{used: &zero}, times{Times: host.Times{All: 20 * time.Second}, used: &used}, 6*time.Second); math.Abs(n.Others-0.05) > 1e-9 {
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
