package rules

import (
	"testing"
	"time"
)

// days are samples 5 minutes apart.
func days(n int, cpus float64) (history []Sample) {
	for i := range n * 24 * 12 {
		history = append(history, Sample{time.Duration(i) * 5 * time.Minute, cpus})
	}
	return history
}

// TestAttuneProfile has the cases of TestBuildProfile and its siblings (profile_test.go).
func TestAttuneProfile(t *testing.T) {
	week := profileOf(days(7, 0.1))
	if week.burst != 0 || week.confidence < 0.85 || week.cpus != 0.1 {
		t.Errorf("a steady week: %+v", week)
	}
	var few []Sample
	for i, cpus := range []float64{0.1, 0.12, 0.11, 0.13, 0.1} {
		few = append(few, Sample{time.Duration(i) * 5 * time.Minute, cpus})
	}
	short := profileOf(few)
	if short.burst != 0 || short.confidence >= 0.1 {
		t.Errorf("20 minutes: %+v", short)
	}
	bursts := days(3, 0.1)
	for i := range 5 {
		bursts = append(bursts, Sample{48*time.Hour + time.Duration(i)*time.Minute, 2})
	}
	if got := profileOf(bursts); !near(got.burst, 20) || got.confidence <= 0.25 {
		t.Errorf("three days with five samples of 20 times the rest: %+v", got)
	}
	peak := days(1, 0.1)
	for i := 14 * 12; i < 15*12; i++ {
		peak[i].CPUs = 0.2 // one hour of 24: no burst, and below the percentile of all
	}
	if got := profileOf(peak); !near(got.cpus, 0.2) || got.burst != 0 {
		t.Errorf("a peak at 14 o'clock: %+v", got)
	}
}

// TestAttuneChain has the cases of chain_test.go with the bounds by default, and the figures of
// docs/architecture/algorithm.md but for its factor of confidence.
func TestAttuneChain(t *testing.T) {
	for _, c := range []struct {
		name      string
		p         profile
		now, want int64
	}{
		{"RealisticCPU", profile{0.2, 0, 0.95}, 500, 250},
		{"LargeChangeCapped", profile{2, 0, 0.95}, 200, 300},
		{"ZeroCurrentBypassesChangeFilter", profile{0.5, 0, 0.95}, 0, 602},
		{"the page's example, by the program's factor", profile{0.2, 0, 0.8}, 500, 250},
		{"less than a tenth", profile{0.375, 0, 1}, 490, 490},
		{"the highest bound", profile{4, 0, 1}, 3000, 4000},
	} {
		if got := attuneStep(c.now, c.p.milliOf(c.now)); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		p    profile
		want int64
	}{{profile{0.2, 0, 0.95}, 241}, {profile{0.2, 0, 0}, 480}, {profile{0, 0, 1}, 600}, {profile{0.2, 8, 1}, 312}} {
		if got := c.p.milliOf(500); got != c.want {
			t.Errorf("%+v: %d before the filter, want %d", c.p, got, c.want)
		}
	}
	for times, percent := range map[float64]int{0: 0, 1: 0, 4: 20, 8: 30, 16: 40, 100: 66} {
		if got := int((profile{burst: times}.burstFactor() - 1 + 1e-9) * 100); got != percent {
			t.Errorf("a burst of %v times: %d %% more, want %d", times, got, percent)
		}
	}
}

// TestAttuneTakesBack: a resize that leaves the container throttled in more than half of the periods is taken back after five
// minutes (safety.md), and the next one is an hour after it. The limit changes only where it is asked to.
func TestAttuneTakesBack(t *testing.T) {
	first := Setting{RequestCPUs: 1, Limit: quotaOf(200 * ms)}
	for _, c := range []struct {
		throttled int64
		limits    bool
		want      Setting
	}{
		{1500, false, Setting{RequestCPUs: 0.5, Limit: first.Limit}},
		{1501, false, first},
		{0, true, Setting{RequestCPUs: 0.5, Limit: quotaOf(100 * ms)}},
	} {
		var rule Rule = Attune{Limits: c.limits}
		seen := Observed{Now: first, History: days(7, 0.3)}
		seen.Now, rule = rule.Next(seen)
		if seen.Now.RequestCPUs != 0.5 {
			t.Fatalf("request %v", seen.Now.RequestCPUs)
		}
		for seen.At < 55*time.Minute {
			seen.At += rule.Cadence()
			seen.Periods, seen.Throttled = 3000, c.throttled
			if seen.Now, rule = rule.Next(seen); seen.Now != c.want {
				t.Fatalf("%+v: %+v after %v", c, seen.Now, seen.At)
			}
		}
		seen.At, seen.Throttled = time.Hour, 0
		if again, _ := rule.Next(seen); again == c.want {
			t.Errorf("%+v: %+v after an hour too", c, again)
		}
	}
	if s, _ := (Attune{}).Next(Observed{Now: first, History: days(7, 0.3)[:47]}); s != first {
		t.Errorf("by 47 samples: %+v", s)
	}
	low := Setting{RequestCPUs: 1, Limit: quotaOf(120 * ms)}
	if s, _ := (Attune{}).Next(Observed{Now: low, History: days(7, 3)}); s.RequestCPUs != 1.2 {
		t.Errorf("a request of %v above a limit of 1.2", s.RequestCPUs)
	}
}
