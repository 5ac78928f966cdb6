package simulate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// The rule of package pace with the reserve and the slack of a gate: after 50 of 100 ms 45 of 70 are used; a work of 30
// ms may start once 20 ms, what is left
// without a slack of 5, cover it and the reserve.
func TestHoldBack(t *testing.T) {
	limit := bandwidth.Limit{Quota: 70 * time.Millisecond, Period: 100 * time.Millisecond}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		elapsed, used, cost time.Duration
		running             int
		least, most         time.Duration
	}{
		"the worked example":           {50 * ms, 45 * ms, 30 * ms, 0, 31 * ms, 32 * ms},
		"covered":                      {50 * ms, 45 * ms, 10 * ms, 0, 0, 0},
		"not with another":             {50 * ms, 45 * ms, 10 * ms, 1, 1, 50 * ms},
		"at the end of the period":     {95 * ms, 50 * ms, 30 * ms, 0, 0, 0},
		"all is used":                  {50 * ms, 90 * ms, 1, 0, 50 * ms, 50 * ms},
		"a period that makes no sense": {150 * ms, 90 * ms, 1, 0, 0, 0},
		"nothing is used":              {0, 0, 20 * ms, 1, 0, 0},
		"the next would be overdrawn":  {92 * ms, 0, 80 * ms, 0, 8 * ms, 8 * ms},
	} {
		if got := holdBack(limit, c.elapsed, c.used, c.cost, c.running); got < c.least || got > c.most {
			t.Errorf("%s: %v, want %v to %v", name, got, c.least, c.most)
		}
	}
	if got := holdBack(bandwidth.Limit{Quota: bandwidth.NoQuota, Period: 100 * ms}, 50*ms, time.Hour, ms, 3); got != 0 {
		t.Errorf("without a quota: %v", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		elapsed, used, cost, running := time.Duration(r.Int64N(int64(100*ms))), time.Duration(r.Int64N(int64(140*ms))),
			time.Duration(r.Int64N(int64(100*ms))), r.IntN(9)
		wait := holdBack(limit, elapsed, used, cost, running)
		if wait < 0 || elapsed+wait > limit.Period {
			t.Fatalf("%v %v %v %d: waits %v", elapsed, used, cost, running, wait)
		}
		if elapsed += wait + 1; wait > 0 && elapsed < limit.Period {
			if again := holdBack(limit, elapsed, used, cost, running); again > 10 {
				t.Fatalf("after %v it waits %v more", wait, again)
			}
		}
	}
}

// gated is a container under a limit with works of a workload that come in bursts, at random, and short pings of another one.
func gated(t *testing.T, r *rand.Rand, gate *Gate, pings bool) (ReplayResult, time.Duration) {
	t.Helper()
	const ms = time.Millisecond
	threads, cpus, quota := 2+r.IntN(6), 2+r.IntN(3), 30+r.IntN(150)
	text := fmt.Sprintf("version: 1\nduration: 10s\nhost: {cpus: %d}\ncgroups: {app: {quota: %dms, period: "+
		"100ms}}\nworkloads: {pings: {kind: burn, cgroup: app}, works: {kind: burn, cgroup: app, threads: %d}}\n", cpus, quota, threads)
	s := parseText(t, text)
	s.Workloads[0].Kind, s.Workloads[1].Kind = Replayed, Replayed
	demanded := time.Duration(0)
	steps := func(every, run time.Duration, atOnce int) (replaySteps []ReplayStep) {
		for at := every; at < 9*time.Second; at += every {
			for range atOnce {
				cost := run*3/4 + time.Duration(r.Int64N(int64(run/2)))
				demanded += cost
				replaySteps = append(replaySteps, ReplayStep{Kind: StepUntil, For: at}, ReplayStep{Kind: StepRun, For: cost})
			}
		}
		return append(replaySteps, ReplayStep{Kind: StepEnd})
	}
	replay := Replay{Gate: gate}
	if pings {
		replay.Threads = append(replay.Threads, ReplayThread{Steps: steps(5*ms, 50*time.Microsecond, 1)})
	} else {
		replay.Threads = append(replay.Threads, ReplayThread{Steps: []ReplayStep{{Kind: StepEnd}}})
	}
	// 60 % of the limit, in works of an eighth of the quota: all threads have three at once.
	run := time.Duration(quota) * ms / 8
	every := time.Duration(float64(3*threads*int(run)) / (0.6 * float64(quota) / 100))
	for range threads {
		replay.Threads = append(replay.Threads, ReplayThread{Steps: steps(every, run, 3)})
	}
	result, err := RunReplay(s, &replay, Options{Seed: r.Uint64()})
	if err != nil {
		t.Fatal(err)
	}
	return result, demanded
}

func seeded(i int) *rand.Rand { return rand.New(rand.NewPCG(7, uint64(i))) }

// A gate with nothing to hold back by changes nothing: no permits to count and no pacing, or no work of its class.
func TestAGateOfNothingChangesNothing(t *testing.T) {
	for i := range 20 {
		plain, _ := gated(t, seeded(i), nil, true)
		for name, gate := range map[string]*Gate{
			"no permits, no pacing": {Workloads: []int{0, 1}},
			"no workload":           {Permits: 1, Paced: true},
			"no work so long":       {Workloads: []int{0, 1}, Permits: 1, Paced: true, Least: time.Hour},
			"more than there are":   {Workloads: []int{0, 1}, Permits: 100},
		} {
			if got, _ := gated(t, seeded(i), gate, true); !reflect.DeepEqual(got.Outcome, plain.Outcome) {
				t.Errorf("%d, %s: %+v, want %+v", i, name, got.Outcome, plain.Outcome)
			}
		}
	}
}

// Work is neither lost nor made by a gate: what was used and what is left are what came. No more works run at once than there
// are permits.
func TestAGateConservesWork(t *testing.T) {
	for i := range 40 {
		for permits := range 3 {
			gate := &Gate{Workloads: []int{1}, Permits: permits, Paced: permits != 1, Least: time.Millisecond}
			got, demanded := gated(t, seeded(i), gate, i%2 == 0)
			used := time.Duration(got.Outcome.Cgroups["app"].UsageSeconds * float64(time.Second))
			left := got.Times[0].Unfinished + got.Times[1].Unfinished
			if off := used + left - demanded; off < -time.Millisecond || off > time.Millisecond {
				t.Errorf("%d, permits %d: %v used and %v left of %v", i, permits, used, left, demanded)
			}
			for _, w := range got.Outcome.Cgroups["app"].Width {
				if permits > 0 && i%2 == 1 && w.CPUs > permits && w.Seconds > 1e-9 {
					t.Errorf("%d, permits %d: %d at once", i, permits, w.CPUs)
				}
			}
		}
	}
}

// Pacing makes no stop that was not there: held back, works that the limit carries are stopped in no more periods than without.
func TestPacingMakesNoStop(t *testing.T) {
	before, after := uint64(0), uint64(0)
	for i := range 60 {
		plain, _ := gated(t, seeded(i), nil, i%2 == 0)
		paced, _ := gated(t, seeded(i), &Gate{Workloads: []int{1}, Paced: true, Least: time.Millisecond}, i%2 == 0)
		was, is := plain.Outcome.Cgroups["app"].ThrottledPeriods, paced.Outcome.Cgroups["app"].ThrottledPeriods
		before, after = before+was, after+is
		if is > was {
			t.Errorf("%d: %d periods throttled, %d without pacing", i, is, was)
		}
	}
	t.Logf("%d periods throttled, %d without pacing", after, before)
	if before == 0 || after*4 > before {
		t.Errorf("%d periods throttled, %d without pacing", after, before)
	}
}
