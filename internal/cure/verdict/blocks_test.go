package verdict

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// backlogs is a server that does its work in order: bursts of requests arrive at random, of 1 to 60 requests, and each
// waits for those before it. One long backlog makes many long responses.
type backlogs struct {
	window time.Duration
	// bursts is how many arrive per second, service the CPU time of a request in ms, at a speed in CPUs.
	bursts, service, speed float64
}

func (b backlogs) runs(r *rand.Rand) Runs {
	of := Runs{Window: b.window}
	free := 0.0
	for at := 0.0; ; {
		if at += r.ExpFloat64() * 1000 / b.bursts; at >= float64(b.window.Milliseconds()) {
			return of
		}
		size := 1 + r.IntN(5)
		if r.IntN(6) == 0 {
			size = 20 + r.IntN(41)
		}
		for range size {
			cpu := b.service * (0.5 + r.Float64())
			free = max(free, at) + cpu/b.speed
			of.WokenMs, of.ResponseMs, of.CPUMs = append(of.WokenMs, at), append(of.ResponseMs, free-at), append(of.CPUMs, cpu)
		}
	}
}

// judged is how many pairs get a verdict.
func judged(rounds int, want string, before, after backlogs, judge func(before, after Runs) string) (got int) {
	for i := range rounds {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		if judge(before.runs(r), after.runs(r)) == want {
			got++
		}
	}
	return got
}

// mostOf is a count that trials, each of which passes with the given chance, exceed with a chance below one in 10,000.
// So a test with this bound also holds for other draws, as after a change of what is drawn.
func mostOf(trials int, chance float64) int {
	term, above := math.Pow(1-chance, float64(trials)), 1.0
	for n := 0; n < trials; n++ {
		if above -= term; above < 1e-4 {
			return n
		}
		term *= float64(trials-n) / float64(n+1) * chance / (1 - chance)
	}
	return trials
}

// leastOf is a count that such trials reach but for a chance below one in 10,000.
func leastOf(trials int, chance float64) int { return trials - mostOf(trials, 1-chance) }

func byBlocks(before, after Runs) string { return JudgeRuns(Evidence{}, 0.99, before, after).Verdict }

// Work that is alike is seldom judged worse, although the responses of one backlog depend on each other. Of 700 rounds
// 3 of 100 are, and the bounds allow 5 of 100. Taken as independent at least a fifth would be judged worse. At 45 bursts
// per second the server is busy for 83 % of the time, and backlogs last for seconds. The draws are fixed.
func TestAlikeIsSeldomWorse(t *testing.T) {
	rounds := require.Rounds(t, 120)
	for _, bursts := range []float64{15, 30, 45} {
		of := backlogs{5 * time.Second, bursts, 2, 1}
		worse := judged(rounds, Worse, of, of, byBlocks)
		alone := judged(rounds, Worse, of, of, func(before, after Runs) string {
			return Judge(Evidence{Quantile: 0.99, Before: before.ResponseMs, After: after.ResponseMs}).Verdict
		})
		t.Logf("%v bursts per second: worse in %d of %d cases, in %d if each run stood alone", bursts, worse, rounds, alone)
		if worse > mostOf(rounds, 0.05) || alone < leastOf(rounds, 0.2) {
			t.Errorf("%v bursts per second: worse in %d of %d cases, in %d if each run stood alone", bursts, worse, rounds, alone)
		}
	}
}

// So are a user's latencies of which it is known when each request began.
func TestAlikeIsSeldomWorseWithTimes(t *testing.T) {
	of := backlogs{5 * time.Second, 30, 2, 1}
	evidence := func(before, after Runs) Evidence {
		return Evidence{Quantile: 0.99, Before: before.ResponseMs, After: after.ResponseMs, BeforeAt: before.WokenMs,
			AfterAt: after.WokenMs}
	}
	byTimes := func(before, after Runs) string { return Judge(evidence(before, after)).Verdict }
	rounds := require.Rounds(t, 120)
	if worse := judged(rounds, Worse, of, of, byTimes); worse > mostOf(rounds, 0.05) {
		t.Errorf("alike, and worse in %d of %d cases", worse, rounds)
	}
	fast := of
	fast.speed = 2
	of.window, fast.window = 10*time.Second, 10*time.Second
	rounds = require.Rounds(t, 30)
	if better := judged(rounds, Better, of, fast, byTimes); better < leastOf(rounds, 0.95) {
		t.Errorf("twice the speed is better in %d of %d cases", better, rounds)
	}
}

// A server at less than half of its speed is found, and so is one at twice its speed.
func TestRealChangesAreFound(t *testing.T) {
	of := backlogs{10 * time.Second, 20, 2, 1}
	slow, fast := of, of
	slow.speed, fast.speed = 0.5, 2
	rounds := require.Rounds(t, 30)
	if worse := judged(rounds, Worse, of, slow, byBlocks); worse < leastOf(rounds, 0.85) {
		t.Errorf("half the speed is worse in %d of %d cases", worse, rounds)
	}
	if better := judged(rounds, Better, of, fast, byBlocks); better < leastOf(rounds, 0.95) {
		t.Errorf("twice the speed is better in %d of %d cases", better, rounds)
	}
}

// One long backlog among others is no worsening: nginx with a burst, whose p90 fell and whose longest grew.
func TestOneLongBacklogIsNoWorsening(t *testing.T) {
	work := func(lengths ...float64) Runs {
		r := Runs{Window: 10 * time.Second}
		for i, length := range lengths {
			for k := range 8 {
				at := float64(i)*600 + float64(k)
				r.WokenMs, r.CPUMs, r.ResponseMs = append(r.WokenMs, at), append(r.CPUMs, 5), append(r.ResponseMs, length-float64(k))
			}
		}
		return r
	}
	before := work(180, 170, 190, 313, 160, 150, 140, 200, 120)
	after := work(60, 90, 140, 522, 80, 70, 100, 110, 65)
	if alone := Judge(Evidence{Quantile: 0.9, Before: before.ResponseMs, After: after.ResponseMs}).Verdict; alone != Worse {
		t.Errorf("runs that stand alone are %s: the case shows nothing", alone)
	}
	if j := JudgeRuns(Evidence{}, 0.9, before, after); j.Verdict == Worse {
		t.Error(j.Why)
	}
}

// A run that waits through the whole recording, as one of a burner does, makes no backlog of a sleeper's runs beside it, so
// that a pin of the two is better.
func TestABurnerIsNoBacklog(t *testing.T) {
	work := func(wait float64) Runs {
		r := Runs{Window: 3 * time.Second, WokenMs: []float64{0}, CPUMs: []float64{900}, ResponseMs: []float64{2900}}
		for at := 0.0; at < 2990; at += 10 {
			r.WokenMs, r.CPUMs, r.ResponseMs = append(r.WokenMs, at), append(r.CPUMs, 0.1),
				append(r.ResponseMs, 0.1+wait*math.Mod(at, 100)/100)
		}
		return r
	}
	if j := JudgeRuns(Evidence{}, 0.95, work(70), work(2)); j.Verdict != Better {
		t.Errorf("%s: %s", j.Verdict, j.Why)
	}
}

func TestBlocks(t *testing.T) {
	for _, tc := range []struct {
		name string
		runs [][3]float64 // woken, wait, value
		of   []int
	}{
		{"idle between", [][3]float64{{0, 5, 1}, {10, 5, 1}, {20, 0, 1}}, []int{0, 1, 2}},
		{"woken while one waits", [][3]float64{{0, 5, 1}, {4, 5, 1}, {8, 0, 1}, {9, 0, 1}}, []int{0, 0, 0, 1}},
		{"the first waits longest", [][3]float64{{0, 50, 1}, {4, 5, 1}, {40, 0, 1}}, []int{0, 0, 0}},
		{"at one moment, without a wait", [][3]float64{{0, 0, 1}, {0, 0, 1}}, []int{0, 1}},
		{"one that does not end", [][3]float64{{0, 500, 1}, {90, 5, 1}, {101, 5, 1}, {150, 5, 1}}, []int{0, 0, 1, 1}},
		{"a long one that ends", [][3]float64{{0, 500, 1}, {90, 5, 1}, {101, 5, 1}, {110, 5, 1}}, []int{0, 0, 0, 0}},
	} {
		var runs []run
		for _, r := range tc.runs {
			runs = append(runs, run{woken: r[0], wait: r[1], value: r[2]})
		}
		if b := blocksOf(runs, 120, 100); !slices.Equal(b.of, tc.of) || b.count != tc.of[len(tc.of)-1]+1 {
			t.Errorf("%s: %v, want %v", tc.name, b.of, tc.of)
		}
	}
	ways := 0
	each(make([]bool, 6), 0, 2, func() { ways++ })
	if ways != 15 || binomial(6, 2) != 15 {
		t.Errorf("2 of 6: %d ways, %v", ways, binomial(6, 2))
	}
}

func TestRunsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := backlogs{time.Second, rapid.Float64Range(5, 60).Draw(t, "bursts"), 2, rapid.Float64Range(0.5, 2).Draw(t, "speed")}
		seed := rapid.Uint64().Draw(t, "seed")
		before := of.runs(rand.New(rand.NewPCG(seed, 1)))
		after := of.runs(rand.New(rand.NewPCG(seed, 2)))
		if j := JudgeRuns(Evidence{}, 0.99, before, before); j.Verdict == Better || j.Verdict == Worse {
			t.Fatalf("the same runs are %s: %s", j.Verdict, j.Why)
		}
		j := JudgeRuns(Evidence{}, 0.99, before, after)
		for _, side := range []*Spread{j.Before, j.After} {
			if side != nil && !(side.Low <= side.Value && side.Value <= side.High && side.High <= side.Longest) {
				t.Fatalf("not in order: %+v", side)
			}
		}
		back := JudgeRuns(Evidence{}, 0.99, after, before)
		if j.Verdict == Better && back.Verdict == Better || j.Verdict == Worse && back.Verdict == Worse {
			t.Fatalf("%s both ways: %s; %s", j.Verdict, j.Why, back.Why)
		}
	})
}
