package agreement

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

var machine = Machine{CPUs: 2, HZ: 250, Kernel: "6.18", CgroupVersion: 1}

func draw(t testing.TB, seed uint64) Draw {
	t.Helper()
	d, err := New(seed, machine)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Every number draws a scenario that a kernel takes, and always the same.
func TestNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		m := Machine{
			CPUs: rapid.IntRange(1, 16).Draw(t, "CPUs"), HZ: rapid.SampledFrom([]int{100, 250, 300, 1000}).Draw(t, "HZ"),
			Kernel:        rapid.SampledFrom([]string{"5.15", "6.1.9", "6.18"}).Draw(t, "kernel"),
			CgroupVersion: rapid.IntRange(1, 2).Draw(t, "version"),
		}
		d, err := New(seed, m)
		if err != nil {
			t.Fatalf("%v\n%s", err, d.Text)
		}
		again, _ := New(seed, m)
		if d.Text != again.Text || d.Key() != again.Key() {
			t.Fatalf("drawn twice:\n%s%s", d.Text, again.Text)
		}
		if s := d.Lasting(3 * time.Second); s.Duration != 3*time.Second || s.Host.CPUs != m.CPUs {
			t.Fatalf("%v on %d CPUs", s.Duration, s.Host.CPUs)
		}
	})
	if _, err := New(1, Machine{CPUs: 2, HZ: 24, Kernel: "6.18", CgroupVersion: 2}); err == nil {
		t.Error("24 Hz is no scenario's")
	}
}

// Forty draws hold all that is to be drawn.
func TestDrawsDiffer(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(40) {
		s := draw(t, seed).Lasting(time.Second)
		for _, c := range s.Cgroups {
			seen["period "+c.Limit.Period.String()]++
			if c.Limit.Burst > 0 {
				seen["burst"]++
			}
			if !c.CPUs.IsEmpty() {
				seen["affinity"]++
			}
			if c.Parent >= 0 {
				seen["nested"]++
			}
		}
		for _, w := range s.Workloads {
			seen[string(w.Kind)]++
			seen["threads"] += w.Threads - 1
		}
	}
	for _, want := range []string{"period 10ms", "period 50ms", "period 100ms", "period 200ms", "burst", "affinity",
		"nested", "burn", "sleep-run", "neighbour", "sleeper", "threads"} {
		if seen[want] < 4 {
			t.Errorf("%s: %d times in forty draws", want, seen[want])
		}
	}
}

// No simulated draw uses more than its quotas, bursts, silos and ticks.
func TestDrawsKeepTheirQuota(t *testing.T) {
	throttled := 0
	for seed := range uint64(200) {
		s := draw(t, seed).Lasting(2 * time.Second)
		r, err := simulate.Run(s, simulate.Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if over := Over(&s, r.Outcome); len(over) > 0 {
			t.Errorf("draw %d: %v", seed, over)
		}
		for _, c := range r.Outcome.Cgroups {
			if c.ThrottledPeriods > 0 {
				throttled++
			}
		}
	}
	if throttled < 100 {
		t.Errorf("only %d cgroups were throttled: nothing was tested", throttled)
	}
}

func TestOver(t *testing.T) {
	d := draw(t, 24) // one burner at 28 ms in 100 ms on one of two CPUs
	s := d.Lasting(time.Second)
	// 12 refills, and a silo and a tick of each CPU.
	most := (12*28151*time.Microsecond + 2*5*time.Millisecond + 2*4*time.Millisecond).Seconds()
	for used, want := range map[float64]int{most - 0.001: 0, most + 0.001: 1} {
		o := scenario.Outcome{Seconds: 1, Cgroups: map[string]scenario.CgroupOutcome{"a": {UsageSeconds: used}}}
		if over := Over(&s, o); len(over) != want {
			t.Errorf("%v s used: %v", used, over)
		}
	}
}
