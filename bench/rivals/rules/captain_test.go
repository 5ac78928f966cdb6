package rules

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// TestCaptainIsTheAuthorsProgram replays what their program was told, and compares the limits.
func TestCaptainIsTheAuthorsProgram(t *testing.T) {
	file, err := os.Open("testdata/captain.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var rule Rule
	var now Setting
	var at time.Duration
	samples, raised, lowered, tookBack := 0, 0, 0, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		var target, limit float64
		if _, err := fmt.Sscanf(line, "target %g limit %g", &target, &limit); err == nil {
			rule, now, at = NewCaptain(target, limit), Setting{Limit: quotaOf(100 * ms)}, 0
			continue
		}
		var used, throttled int64
		if _, err := fmt.Sscanf(line, "%d %d %g", &used, &throttled, &limit); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		before, at0 := now.Limit.CPUs(), at
		now, rule = rule.Next(Observed{At: at, Now: now, Used: time.Duration(used) * ms, For: 100 * ms, Periods: 1, Throttled: throttled})
		at += rule.Cadence()
		if got := now.Limit.CPUs(); math.Abs(got-limit) > 1e-5 {
			t.Fatalf("sample %d at %v: limit %v, theirs %v", samples, at0, got, limit)
		}
		samples++
		switch change := limit - before; {
		case at0 == 0:
		case change < -1e-5:
			lowered++
		case change > 1e-5 && at0%time.Second != 0:
			tookBack++
		case change > 1e-5:
			raised++
		}
	}
	if samples != 980 || raised < 5 || lowered < 5 || tookBack < 5 {
		t.Errorf("%d samples with %d limits raised, %d lowered, %d taken back: the file does not try all", samples, raised, lowered, tookBack)
	}
}

// TestCaptainBound: the least limit is a hundredth of a CPU, which the kernel takes.
func TestCaptainBound(t *testing.T) {
	var rule Rule = NewCaptain(0, 0.011)
	var s Setting
	for i := range 100 {
		s, rule = rule.Next(Observed{At: time.Duration(i) * 100 * ms, For: 100 * ms, Periods: 1})
	}
	if s.Limit != quotaOf(ms) {
		t.Errorf("%+v", s.Limit)
	}
}

// TestCaptainsDecisionMayBeEarly by a tenth of a millisecond, as samples of a real clock are.
func TestCaptainsDecisionMayBeEarly(t *testing.T) {
	for early, want := range map[time.Duration]time.Duration{50 * time.Microsecond: 400 * ms, 150 * time.Microsecond: 200 * ms} {
		var rule Rule = NewCaptain(0, 2)
		_, rule = rule.Next(Observed{})
		s, _ := rule.Next(Observed{At: time.Second - early, For: time.Second - early, Used: time.Second, Periods: 10, Throttled: 10})
		if s.Limit.Quota != want {
			t.Errorf("%v early: a quota of %v, want %v", early, s.Limit.Quota, want)
		}
	}
}
