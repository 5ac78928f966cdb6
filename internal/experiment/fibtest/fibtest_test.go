package fibtest

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == threads.Command {
		os.Exit(threads.Main())
	}
	os.Exit(m.Run())
}

func TestJudge(t *testing.T) {
	alone := Run{Threads: 1, Share: 1}
	two := Run{Threads: 2, Slow: 1, QuotaSeconds: 0.01, Periods: 50, ThrottledPeriods: 50, Affected: Range{0.83, 0.92},
		Fixed: Range{1, 1.02}}
	with := func(r Run, change func(*Run)) Run { change(&r); return r }
	share := func(v float64) func(*Run) { return func(r *Run) { r.Share = v } }
	for name, test := range map[string]struct {
		runs []Run
		want Verdict
		why  string
	}{
		"kept":     {[]Run{alone, with(two, share(1.01))}, verdictFixed, "at most 0.92"},
		"expired":  {[]Run{alone, with(two, share(0.85))}, verdictAffected, "throttled in 50 of 50"},
		"worse":    {[]Run{alone, with(two, share(0.3))}, verdictAffected, "at least 1.00"},
		"between":  {[]Run{alone, with(two, share(0.96))}, verdictUnmeasurable, "between"},
		"busy":     {[]Run{with(alone, share(0.6)), with(two, share(0.6))}, verdictUnmeasurable, "too busy"},
		"idle":     {[]Run{alone, with(two, func(r *Run) { r.Share, r.ThrottledPeriods = 1, 3 })}, verdictUnmeasurable, "3 of 50"},
		"one CPU":  {[]Run{alone, with(two, func(r *Run) { r.Slow = 0 })}, verdictUnmeasurable, "the same"},
		"overlap":  {[]Run{alone, with(two, func(r *Run) { r.Affected.High = 1 })}, verdictUnmeasurable, "the same"},
		"divided":  {[]Run{alone, with(two, share(1)), with(two, share(0.8))}, verdictUnmeasurable, "contradict"},
		"one says": {[]Run{alone, with(two, share(0.96)), with(two, share(1))}, verdictFixed, ""},
	} {
		if got, why := judge(test.runs); got != test.want || !strings.Contains(why, test.why) {
			t.Errorf("%s: %s, %s", name, got, why)
		}
	}
}

// The two behaviours can be told apart from 2 CPUs on, and better the more there
// are; with one CPU they cannot.
func TestExpected(t *testing.T) {
	gap := func(cpus, hz int) float64 {
		all := variants(cpus)
		a := all[len(all)-1]
		affected, err := expected(a, cpus, affectedKernel, hz)
		if err != nil {
			t.Fatal(err)
		}
		fixed, err := expected(a, cpus, fixedKernel, hz)
		if err != nil {
			t.Fatal(err)
		}
		return fixed.Low - affected.High
	}
	for _, hz := range []int{250, 1000} {
		if g := gap(1, hz); g >= margin {
			t.Errorf("1 CPU, %d Hz: %v apart", hz, g)
		}
		if g := gap(2, hz); g < margin {
			t.Errorf("2 CPUs, %d Hz: %v apart", hz, g)
		}
		if g := gap(16, hz); g < 0.2 {
			t.Errorf("16 CPUs, %d Hz: %v apart", hz, g)
		}
	}
	if hz := tickRate(); hz < 10 || hz > 10_000 {
		t.Errorf("%d ticks per second", hz)
	}
}

// On the real kernel, which here and in the lab is newer than 5.4: fixed, or not
// to be told, but never affected.
func TestThisKernel(t *testing.T) {
	require.CheckAll(t, "it measures for long what only `bench fibtest` needs")
	require.Alone(t, "what the two threads use with the quota")
	h := cgrouptest.New(t).Host
	// At the top, where its cgroup has the highest weight: below the test's own it
	// would have to share what that gets.
	r, err := Test(t.Context(), Options{Host: h, CPUs: min(8, runtime.NumCPU()), Seconds: 1, Repeat: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range r.Runs {
		t.Logf("%+v", run)
		if run.Periods == 0 || run.UsageSeconds <= 0 || run.Iterations == 0 {
			t.Errorf("%+v", run)
		}
	}
	if r.Verdict == verdictAffected || r.Why == "" {
		t.Errorf("%s: %s", r.Verdict, r.Why)
	}
}
