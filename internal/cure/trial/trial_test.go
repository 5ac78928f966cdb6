package trial

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
)

// served are requests of some seconds: most take p50, and some stalls make a share of them wait for up to p99.
func served(draw *rand.Rand, n int, p50, p99 float64) verdict.Requests {
	r := verdict.Requests{Window: 6 * time.Second, CPUs: 0.5}
	stalled, left := 0, 0.0
	for i := range n {
		at := 6000 * float64(i) / float64(n)
		took := p50 * math.Exp(0.2*draw.NormFloat64())
		if stalled == 0 && draw.Float64() < 0.02 {
			stalled, left = 1+draw.IntN(8), p99*(0.6+0.8*draw.Float64())
		}
		if stalled > 0 {
			stalled--
			took = max(took, left)
			left -= 6000 / float64(n)
		}
		r.BeganMs, r.TookMs = append(r.BeganMs, at), append(r.TookMs, took)
	}
	return r
}

func exactly(n int, ms float64) verdict.Requests {
	r := verdict.Requests{Window: 6 * time.Second}
	for i := range n {
		r.BeganMs, r.TookMs = append(r.BeganMs, float64(i)*10), append(r.TookMs, ms+float64(i%10)/1000)
	}
	return r
}

func three() *Trial {
	return New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1}, {Name: "narrow", Change: 3}}, 0.99, false)
}

// play runs a trial to its end, of at most so many rounds.
func play(t *Trial, draw *rand.Rand, most int, turn func(v int) Measured) (rounds int) {
	for used := time.Duration(0); t.More(used, time.Second, time.Duration(most*len(t.variants))*time.Second); rounds++ {
		for _, v := range t.Order(draw) {
			t.Add(v, turn(v))
			used += time.Second
		}
	}
	return rounds
}

// Of three ways to run a container, two of which differ from leaving it, the choice is nearly always within a tenth of the best, or leaves
// it where nothing is better; and it ends early where the difference is large.
func TestChoosesTheBest(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 16
	}
	for _, c := range []struct {
		leave, burst, narrow float64
		good                 []int
		most                 float64 // mean rounds
	}{
		{60, 15, 58, []int{1}, 3},
		{60, 62, 14, []int{2}, 3},
		{60, 15, 15.5, []int{1, 2}, 3},
		{60, 60, 200, []int{0}, 4.5},
		{40, 41, 40, []int{0}, 4.5},
	} {
		right, rounds := 0, 0
		for seed := range uint64(n) {
			draw := rand.New(rand.NewPCG(seed, 1))
			trial := three()
			rounds += play(trial, draw, 3, func(v int) Measured {
				return Measured{Judged: served(draw, 600, 2, []float64{c.leave, c.burst, c.narrow}[v])}
			})
			got := trial.Choice()
			if got.Why == "" {
				t.Fatal("no reason")
			}
			for _, good := range c.good {
				if got.Variant == good {
					right++
				}
			}
		}
		// The right code misses a case in twenty at most.
		if right < n*3/4 || float64(rounds)/float64(n) > c.most {
			t.Errorf("%+v: right in %d of %d, %.2f rounds", c, right, n, float64(rounds)/float64(n))
		}
	}
}

func TestRacing(t *testing.T) {
	trial := three()
	trial.Add(0, Measured{Judged: exactly(600, 40)})
	if out := trial.Add(1, Measured{Judged: exactly(600, 100)}); out != "" {
		t.Errorf("out before all had a turn: %s", out)
	}
	if out := trial.Add(2, Measured{Judged: exactly(600, 20)}); out != "" {
		t.Errorf("the best is out: %s", out)
	}
	if r := trial.Row(1); !strings.Contains(r.Why, "clearly worse after 1 round") || r.Rounds != 1 || r.Harm {
		t.Errorf("%+v", r)
	}
	if trial.Settled() {
		t.Error("settled after one round")
	}
	for _, v := range trial.Order(rand.New(rand.NewPCG(1, 1))) {
		if v == 1 {
			t.Error("what is clearly worse is tried again")
		}
		trial.Add(v, Measured{Judged: exactly(600, []float64{40, 0, 20}[v])})
	}
	if c := trial.Choice(); c.Answer != Best || c.Variant != 2 || !trial.Settled() || !strings.Contains(c.Why, "narrow: measured 20 ms") {
		t.Errorf("%+v; settled %v", c, trial.Settled())
	}
	if slow, all := trial.Cost(); slow != 600 || all != 3000 {
		t.Errorf("%d of %d", slow, all)
	}
}

// A turn with one long stall is no proof: what it shows is not beyond its own noise, so that the variant stays.
func TestNoiseDropsNothing(t *testing.T) {
	apart := func(slow ...int) verdict.Requests { // requests that do not wait for each other, but for those of a stall
		r := verdict.Requests{Window: 40 * time.Second}
		for i := range 400 {
			took := 10.0
			for _, s := range slow {
				if i == s {
					took = 300
				}
			}
			r.BeganMs, r.TookMs = append(r.BeganMs, float64(i)*100), append(r.TookMs, took)
		}
		return r
	}
	trial := New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1}}, 0.99, false)
	trial.Add(0, Measured{Judged: apart()})
	if out := trial.Add(1, Measured{Judged: apart(100, 101, 102, 103, 104, 105)}); out != "" {
		t.Errorf("out for one stall: %s", out)
	}
	trial = New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1}}, 0.99, false)
	trial.Add(0, Measured{Judged: apart()})
	var many []int
	for i := 7; i < 400; i += 10 {
		many = append(many, i)
	}
	if out := trial.Add(1, Measured{Judged: apart(many...)}); out == "" {
		t.Error("many stalls, and it stays")
	}
}

// Once each variant had its rounds, the time goes to leaving it and to the two that may win.
func TestContenders(t *testing.T) {
	trial := New([]Variant{{Name: "leave it"}, {Name: "a", Change: 1}, {Name: "b", Change: 2}, {Name: "c", Change: 3},
		{Name: "d", Change: 4}}, 0.99, false)
	ms := []float64{40, 38, 31, 45, 33}
	draw := rand.New(rand.NewPCG(1, 1))
	for range leastRounds {
		if n := len(trial.Order(draw)); n != 5 || trial.Left() != 5 {
			t.Fatalf("%d variants", n)
		}
		for v := range ms {
			trial.Add(v, Measured{Judged: exactly(600, ms[v])})
		}
	}
	order := trial.Order(draw)
	slices.Sort(order)
	if !slices.Equal(order, []int{0, 2, 4}) || trial.Left() != 3 {
		t.Errorf("the next round is of %v", order)
	}
}

// The lowest goes on where others waited longer in its first turns, by chance, and wins once more turns show that they do not.
func TestLowestGoesOnWhereItSeemsToHarm(t *testing.T) {
	trial := New([]Variant{{Name: "leave it"}, {Name: "a", Change: 1}, {Name: "b", Change: 2}, {Name: "c", Change: 3}}, 0.99, false)
	ms, draw := []float64{40, 13, 12, 10}, rand.New(rand.NewPCG(1, 1))
	add := func(v int, wait float64) {
		trial.Add(v, Measured{Judged: exactly(600, ms[v]), OthersWaitMS: &wait})
	}
	for round := range leastRounds {
		for v := range ms {
			add(v, 100+float64(10*round+v)+150*float64(v/3))
		}
	}
	if why := trial.Row(3).Why; !strings.Contains(why, "others wait") {
		t.Fatalf("it does not seem to harm: %q", why)
	}
	order := trial.Order(draw)
	slices.Sort(order)
	if !slices.Equal(order, []int{0, 1, 2, 3}) {
		t.Fatalf("the next round is of %v", order)
	}
	for range 6 {
		add(0, 100)
		add(3, 100)
	}
	if got := trial.Choice(); got.Answer != Best || got.Variant != 3 {
		t.Errorf("%+v; %q", got, trial.Row(3).Why)
	}
}

// What harms is out at once and cannot win, however fast it was; leaving it cannot be out.
func TestHarm(t *testing.T) {
	fast, left := exactly(600, 10), exactly(600, 40)
	harmedNeighbour := []verdict.Neighbour{
		{Name: "db", Before: hoststate.Observed{StoppedLow: new(0.0), StoppedHigh: new(0.0)},
			After: hoststate.Observed{StoppedLow: new(0.3), StoppedHigh: new(0.3)}}}
	lifted := exactly(600, 10)
	for i := range lifted.TookMs {
		lifted.TookMs[i] = 30
	}
	middle := exactly(600, 2)
	for i := range 20 {
		middle.TookMs[i*30] = 40
	}
	for name, c := range map[string]struct {
		leave, burst Measured
		why          string
	}{
		"ended at once": {Measured{Judged: left}, Measured{Judged: fast, Ended: "a request took 3 s"}, "3 s"},
		"a neighbour":   {Measured{Judged: left}, Measured{Judged: fast, Neighbours: harmedNeighbour}, "less: db"},
		"another kind": {Measured{Judged: left, Others: []verdict.Requests{exactly(600, 100)}},
			Measured{Judged: fast, Others: []verdict.Requests{exactly(600, 160)}}, "other requests"},
		"the middle is up":  {Measured{Judged: middle}, Measured{Judged: lifted}, "to 30 ms"},
		"too few to tell":   {Measured{Judged: left}, Measured{Judged: exactly(5, 1)}, ""},
		"nothing of leave":  {Measured{Judged: exactly(5, 1)}, Measured{Judged: fast}, ""},
		"no better by much": {Measured{Judged: exactly(600, 10.4)}, Measured{Judged: fast}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			trial := New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1}}, 0.99, false)
			for range 2 {
				trial.Add(0, c.leave)
				trial.Add(1, c.burst)
			}
			if c := trial.Choice(); c.Variant != 0 || c.Why == "" || c.Answer == Best {
				t.Errorf("%+v", c)
			}
			if got := trial.Row(1).Why; c.why != "" && !strings.Contains(got, c.why) {
				t.Errorf("%q does not say %q", got, c.why)
			}
		})
	}
	trial := three()
	trial.Add(0, Measured{Judged: left, Ended: "late"})
	if order := trial.Order(rand.New(rand.NewPCG(1, 1))); len(order) != 3 {
		t.Errorf("leaving it is out: %v", order)
	}
}

// Two glances put out what is far worse, and nothing is kept of the others: one may have met rare work.
func TestGlance(t *testing.T) {
	trial := three()
	trial.Add(0, Measured{Judged: exactly(600, 10)})
	if out := trial.Glance(1, Measured{Judged: exactly(100, 25)}); out != "" || trial.Row(1).Requests != 0 {
		t.Errorf("%q, %+v", out, trial.Row(1))
	}
	for look := 1; look <= twice; look++ {
		if why := trial.Glance(2, Measured{Judged: exactly(100, 60)}); why == "" || (trial.Out(2) != "") != (look == twice) {
			t.Errorf("look %d: %q, %+v", look, why, trial.Row(2))
		}
	}
	if trial.Row(2).Requests != 100 || trial.Row(2).Rounds != 1 {
		t.Errorf("%+v", trial.Row(2))
	}
	if out := trial.Glance(1, Measured{Judged: exactly(3, 900)}); out != "" {
		t.Errorf("of three requests: %q", out)
	}
}

// A request is late when it takes far longer than any when it was left.
func TestBound(t *testing.T) {
	trial := three()
	if trial.Bound() != 0 {
		t.Errorf("%v before anything is known", trial.Bound())
	}
	trial.Add(0, Measured{Judged: exactly(600, 40), Others: []verdict.Requests{exactly(30, 300)}})
	if got := trial.Bound(); got < 700*time.Millisecond || got > 900*time.Millisecond ||
		LongestOf(got) < 290*time.Millisecond || LongestOf(got) > 310*time.Millisecond {
		t.Errorf("%v, of %v", got, LongestOf(got))
	}
}

// Each order has every variant once, and differs from round to round.
func TestOrders(t *testing.T) {
	trial, seen, draw := three(), map[string]bool{}, rand.New(rand.NewPCG(3, 3))
	for range 50 {
		order := trial.Order(draw)
		have := map[int]bool{}
		for _, v := range order {
			have[v] = true
		}
		if len(order) != 3 || len(have) != 3 {
			t.Fatalf("%v", order)
		}
		seen[fmt.Sprint(order)] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d orders", len(seen))
	}
	trial.Drop(1, "refused")
	if order := trial.Order(draw); len(order) != 2 {
		t.Errorf("%v", order)
	}
}

// stalled are 300 requests that do not wait for each other, but for six in one stall of so many ms.
func stalled(ms float64) Measured {
	r := verdict.Requests{Window: 30 * time.Second}
	for i := range 300 {
		took := 10.0
		if i >= 100 && i < 106 {
			took = ms
		}
		r.BeganMs, r.TookMs = append(r.BeganMs, float64(i)*100), append(r.TookMs, took)
	}
	return Measured{Judged: r}
}

// What the forecast would choose is kept by less evidence, and replaced by more.
func TestTheForecastsWord(t *testing.T) {
	for name, c := range map[string]struct {
		leave, burst, narrow [4]float64
		with, without        int // the choice where the forecast would choose the burst, and where it says nothing
	}{
		"lower, and within what rounds differ": {[4]float64{40, 30, 36, 44},
			[4]float64{25, 45, 30, 33}, [4]float64{60, 60, 60, 60}, 0, 0},
		"another one is lower by chance": {[4]float64{60, 62, 60, 61},
			[4]float64{40, 41, 39, 40}, [4]float64{30, 44, 28, 38}, 1, 2},
		"another one is lower in each round": {[4]float64{60, 62, 60, 61},
			[4]float64{40, 41, 39, 40}, [4]float64{30, 33, 29, 30}, 2, 2},
		"of two that it would choose the lower": {[4]float64{60, 62, 60, 61},
			[4]float64{40, 41, 39, 40}, [4]float64{30, 44, 28, 38}, 2, 2},
		"it is not lower than leaving it, at all": {[4]float64{60, 60, 60, 60},
			[4]float64{70, 60, 62, 65}, [4]float64{60, 80, 70, 60}, 0, 0},
	} {
		for _, expected := range []bool{true, false} {
			trial := New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1, Expected: expected},
				{Name: "narrow", Change: 3, Expected: expected && strings.HasPrefix(name, "of two")}}, 0.99, false)
			for round := range c.leave {
				for v, ms := range [][4]float64{c.leave, c.burst, c.narrow} {
					trial.Add(v, stalled(ms[round]))
				}
			}
			want := c.without
			if expected {
				want = c.with
			}
			if got := trial.Choice(); got.Variant != want {
				t.Errorf("%s, expected %v: %+v, want %d", name, expected, got, want)
			}
		}
	}
}

// Where the kernel counts that stops are gone, the latency has less to prove: alone it would not be beyond chance. Without fewer stops, or
// where the latency is no lower, nothing changes.
func TestShorterStopsSupport(t *testing.T) {
	stall := func(ms, stopped float64) Measured {
		m := stalled(ms)
		m.Stopped = &stopped
		return m
	}
	left, lower, equal := [3]float64{237, 335, 132}, [3]float64{150, 119, 94}, [3]float64{240, 300, 140}
	for name, c := range map[string]struct {
		ms      [3]float64
		stopped [3]float64
		want    int
	}{
		"lower, and stopped for as long":    {lower, [3]float64{0.06, 0.05, 0.04}, 0},
		"lower, and hardly stopped":         {lower, [3]float64{0.004, 0, 0.01}, 1},
		"as slow, and hardly stopped":       {equal, [3]float64{0.004, 0, 0.01}, 0},
		"lower, and stopped less by chance": {lower, [3]float64{0.06, 0.002, 0.05}, 0},
	} {
		trial := New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1, Expected: true}, {Name: "narrow", Change: 3}}, 0.99, false)
		for round := range left {
			trial.Add(0, stall(left[round], []float64{0.06, 0.07, 0.03}[round]))
			trial.Add(1, stall(c.ms[round], c.stopped[round]))
			trial.Add(2, stall(left[round], 0.05))
		}
		if got := trial.Choice(); got.Variant != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Of remedies under which requests take as long, the smaller one wins only if quotas do not stop it for longer. Leaving it wins in
// any case.
func TestStopsDecideBetweenEquals(t *testing.T) {
	for name, c := range map[string]struct {
		leftMS, longMS float64
		short, long    *float64 // stopped
		expected       bool     // the short one
		want           int
		other          string // remedy; "": burst too
	}{
		"both are free of stops":                  {90, 40, new(0.0), new(0.0), false, 1, ""},
		"the short one is still stopped":          {90, 40, new(0.006), new(0.0), false, 2, ""},
		"it is what the forecast would choose":    {90, 40, new(0.006), new(0.0), true, 2, ""},
		"by less than counts":                     {90, 40, new(0.001), new(0.0005), false, 1, ""},
		"the long one is stopped":                 {90, 40, new(0.0), new(0.006), false, 1, ""},
		"stops were not measured":                 {90, 40, new(0.006), nil, false, 1, ""},
		"the long one is slower, and not stopped": {90, 60, new(0.006), new(0.0), false, 1, ""},
		"the other is another remedy":             {90, 40, new(0.006), new(0.0), false, 1, "narrow"},
		"leaving it is as fast":                   {41, 40, new(0.006), new(0.0), false, 0, ""},
	} {
		trial := New([]Variant{{Name: "leave it"}, {Name: "burst", Remedy: "burst", Change: 1, Expected: c.expected},
			{Name: "the other", Remedy: cmp.Or(c.other, "burst"), Change: 2}}, 0.99, false)
		for range 3 {
			for v, m := range []Measured{{Judged: exactly(600, c.leftMS), Stopped: new(0.05)}, {Judged: exactly(600, 41), Stopped: c.short},
				{Judged: exactly(600, c.longMS), Stopped: c.long}} {
				trial.Add(v, m)
			}
		}
		if got := trial.Choice(); got.Variant != c.want {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
}

// A remedy that a long request put out is tried again once leaving the container has shown such a request, without the
// turn that was cut off.
func TestForgetFew(t *testing.T) {
	trial := three()
	trial.Add(0, Measured{Judged: exactly(19, 50)})
	trial.Add(1, Measured{Judged: exactly(100, 10)})
	trial.Add(2, Measured{Judged: exactly(3, 10), Ended: "a neighbour loses"})
	trial.ForgetFew()
	for v, want := range []int{0, 1, 1} {
		if got := trial.Row(v).Rounds; got != want {
			t.Errorf("variant %d has %d rounds, want %d", v, got, want)
		}
	}
}

func TestReadmit(t *testing.T) {
	trial := three()
	trial.Add(0, Measured{Judged: exactly(600, 50)})
	for range twice {
		trial.Add(1, Measured{Judged: exactly(100, 10), Ended: "a request took 457 ms", Late: 457 * time.Millisecond})
		trial.Add(2, Measured{Judged: exactly(600, 20), Ended: "a neighbour loses"})
	}
	if trial.Readmit(400 * time.Millisecond); trial.Out(1) == "" {
		t.Error("it is tried again, and leaving it has not shown such a request")
	}
	trial.Readmit(time.Second)
	if trial.Out(1) != "" || trial.Out(2) == "" {
		t.Errorf("out: %q, %q", trial.Out(1), trial.Out(2))
	}
	if row := trial.Row(1); row.Rounds != 0 || row.Requests != 0 {
		t.Errorf("the turn that was cut off counts: %+v", row)
	}
}

// A period of a second meets its first stop in its second turn: what had lost to it alone is tried again, and wins.
func TestTriedAgainWhereTheOtherWasLucky(t *testing.T) {
	trial := three()
	trial.Enter(Variant{Name: "period", Change: 4})
	trial.Add(0, Measured{Judged: exactly(600, 77)})
	trial.Add(1, Measured{Judged: exactly(600, 10)})
	trial.Add(3, Measured{Judged: exactly(600, 36)})
	if out := trial.Add(2, Measured{Judged: exactly(600, 35)}); out == "" || trial.Out(3) == "" {
		t.Fatalf("three times the best, and still in: %q, %q", out, trial.Out(3))
	}
	trial.Add(0, Measured{Judged: exactly(600, 77)})
	if out := trial.Out(2); out == "" {
		t.Fatal("nothing has changed, and it is in again")
	}
	trial.Add(1, Measured{Judged: exactly(600, 400)})
	if trial.Out(2) != "" || trial.Out(3) != "" || !trial.Again(2) || !trial.Again(3) || trial.Again(1) {
		t.Errorf("the best is 63 ms now: %q, %q", trial.Out(2), trial.Out(3))
	}
	if trial.Add(3, Measured{Judged: exactly(600, 36)}); trial.More(time.Minute, time.Second, time.Minute) {
		t.Error("what is tried again takes more than the budget")
	}
	for range 20 { // the lucky one's turns differ by a factor of 40, which counts for all
		trial.Add(0, Measured{Judged: exactly(600, 77)})
		trial.Add(2, Measured{Judged: exactly(600, 35)})
	}
	if got := trial.Choice(); got.Variant != 2 {
		t.Errorf("chose %d: %s", got.Variant, got.Why)
	}
	trial.Drop(3, "it cannot be applied")
	if trial.Add(1, Measured{Judged: exactly(600, 400)}); trial.Out(3) == "" {
		t.Error("what cannot be applied is tried again")
	}
}

// Few requests in each of several rounds choose without an interval: 24 of a service that is asked four times a second
// are not enough for one.
func TestChoiceOfFewRequests(t *testing.T) {
	for n := 1; n < 60; n++ {
		trial := three()
		for range 4 {
			trial.Add(0, Measured{Judged: exactly(n, 100)})
			trial.Add(1, Measured{Judged: exactly(n, 10)})
			trial.Add(2, Measured{Judged: exactly(n, 90)})
		}
		c := trial.Choice()
		if few := n < leastOfRound; few != (c.Answer == TooFew) || !few && c.Variant != 1 {
			t.Errorf("%d requests a round: %+v", n, c)
		}
	}
}

// Rare work that meets one turn takes no variant out: for a part of the turn, for all of it beside more CPU time, or where a request was
// so late that the turn was ended.
func TestRareWorkTakesNothingOut(t *testing.T) {
	compacted := func(from, to float64) verdict.Requests {
		r := exactly(600, 20)
		for i, at := range r.BeganMs {
			if at >= from && at < to {
				r.TookMs[i] = 300
			}
		}
		return r
	}
	worked := compacted(0, 6000)
	worked.CPUs = 0.9
	late := Measured{Judged: exactly(100, 20), Ended: "a request took 457 ms", Late: 457 * time.Millisecond}
	for name, first := range map[string]Measured{
		"a part": {Judged: compacted(1000, 3000)}, "a whole turn": {Judged: worked}, "late": late} {
		left, burst := exactly(600, 60), exactly(600, 20)
		left.CPUs, burst.CPUs = 0.5, 0.5
		trial := three()
		for round := range 4 {
			trial.Add(0, Measured{Judged: left})
			one := Measured{Judged: burst}
			if round == 0 {
				one = first
			}
			trial.Add(1, one)
			trial.Add(2, Measured{Judged: left})
		}
		if out := trial.Out(1); out != "" {
			t.Errorf("%s: out: %s", name, out)
		}
		if c := trial.Choice(); c.Variant == 0 && c.Answer != Undecided {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A trial that does not tell says so, and how many rounds would.
func TestUndecided(t *testing.T) {
	draw := rand.New(rand.NewPCG(5, 5))
	trial := New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1}}, 0.9, false)
	for range 2 {
		trial.Add(0, Measured{Judged: exactly(40, 100*math.Exp(0.4*draw.NormFloat64()))})
		trial.Add(1, Measured{Judged: exactly(40, 70*math.Exp(0.4*draw.NormFloat64()))})
	}
	c := trial.Choice()
	if c.Answer != Undecided || c.Rounds <= 2 || !strings.HasPrefix(c.Why, "burst measured") {
		t.Errorf("%+v", c)
	}
	// Where no gain of a quarter is left, nothing is better, and the bound is said.
	trial = New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1}}, 0.9, false)
	for range 6 {
		trial.Add(0, Measured{Judged: exactly(40, 100*math.Exp(0.05*draw.NormFloat64()))})
		trial.Add(1, Measured{Judged: exactly(40, 100*math.Exp(0.05*draw.NormFloat64()))})
	}
	if c := trial.Choice(); c.Answer != NoneBetter || !strings.Contains(c.Why, "would have been seen") {
		t.Errorf("%+v", c)
	}
}

// Where no remedy had a turn, no gain would have been seen.
func TestNoRemedyCouldBeTried(t *testing.T) {
	trial := New([]Variant{{Name: "leave it"}, {Name: "burst"}, {Name: "period"}, {Name: "pin"}}, 0.9, false)
	for range 3 {
		trial.Add(0, Measured{Judged: exactly(40, 100)})
	}
	trial.Drop(1, "the kernel has none")
	trial.Drop(2, "the kernel has none")
	trial.Drop(3, "no CPU is free")
	if c := trial.Choice(); c.Answer != NoneBetter || c.Why != "no remedy could be tried: the kernel has none; no CPU is free" {
		t.Errorf("%+v", c)
	}
}

// Turns of other work are no luck: what explains a latency is taken out, unless the variants themselves move it.
func TestWorkIsTakenOut(t *testing.T) {
	values := [][]float64{{1, 2, 1, 2, 1}, {1, 0, 0, 1, 0}}
	busy := [][][]float64{{{0}, {1}, {0}, {1}, {0}}, {{1}, {0}, {0}, {1}, {0}}}
	f := fit(values, busy)
	if f.work == nil || math.Abs(f.mean[0]-f.mean[1]-1) > 1e-9 || f.scatter > leastScatter {
		t.Errorf("%+v", f)
	}
	if f := fit(values, [][][]float64{{{1}, {1}, {1}, {1}, {1.1}}, {{0}, {0}, {0}, {0}, {0.1}}}); f.work != nil {
		t.Errorf("what the variants move counts as work: %+v", f)
	}
	if f := fit(values, [][][]float64{{{1}, {1}, {0}, {0}, {1}}, {{0}, {0}, {1}, {1}, {0}}}); f.work != nil {
		t.Errorf("what explains nothing is taken out: %+v", f)
	}
}

// What makes others wait for a CPU beyond the bound cannot win, where that is beyond what turns differ by themselves.
func TestOthersWait(t *testing.T) {
	for name, c := range map[string]struct {
		left, burst [4]float64
		bound       float64
		want        int
	}{
		"much longer":              {[4]float64{100, 110, 95, 100}, [4]float64{200, 210, 190, 220}, DefaultNeighbours, 0},
		"within the bound":         {[4]float64{100, 110, 95, 100}, [4]float64{130, 120, 125, 130}, DefaultNeighbours, 1},
		"the bound is wider":       {[4]float64{100, 110, 95, 100}, [4]float64{200, 210, 190, 220}, 2, 1},
		"in one turn, which is it": {[4]float64{100, 20, 400, 100}, [4]float64{100, 30, 900, 100}, DefaultNeighbours, 1},
		"too little to count":      {[4]float64{1, 1, 1, 1}, [4]float64{4, 4, 4, 4}, DefaultNeighbours, 1},
	} {
		trial := New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1}}, 0.99, false)
		trial.Neighbours = c.bound
		for round := range c.left {
			trial.Add(0, Measured{Judged: exactly(600, 40), OthersWaitMS: &c.left[round]})
			trial.Add(1, Measured{Judged: exactly(600, 10), OthersWaitMS: &c.burst[round]})
		}
		got := trial.Choice()
		if got.Variant != c.want || c.want == 0 && !strings.Contains(trial.Row(1).Why, "others wait longer for a CPU") {
			t.Errorf("%s: %+v, %s", name, got, trial.Row(1).Why)
		}
	}
}

// A turn that does not show how a variant goes on counts for nothing that is kept.
func TestUnsteadyTurnsWinNothing(t *testing.T) {
	trial := New([]Variant{{Name: "leave it"}, {Name: "burst", Change: 1}}, 0.99, false)
	for round := range 4 {
		trial.Add(0, Measured{Judged: exactly(600, 40)})
		one := Measured{Judged: exactly(600, 10)}
		if round > 0 {
			one.Unsteady = "not in its steady state"
		}
		trial.Add(1, one)
	}
	if c := trial.Choice(); c.Variant != 0 || trial.Row(1).Why != "not in its steady state" {
		t.Errorf("%+v, %+v", c, trial.Row(1))
	}
}

// Of several settings of the remedy that the forecast would choose the lowest ones go on, and all variants together are wrong by alpha.
func TestFamilyOfTheExpected(t *testing.T) {
	of := New([]Variant{{Name: "leave it"}, {Name: "period 20ms", Expected: true}, {Name: "burst"}, {Name: "period 50ms", Expected: true},
		{Name: "period 10ms", Expected: true}}, 0.99, false)
	for range leastRounds {
		for v, ms := range []float64{60, 10, 12, 30, 40} {
			of.Add(v, Measured{Judged: exactly(200, ms)})
		}
	}
	if got := of.contenders(); !slices.Contains(got, 1) {
		t.Errorf("the lowest is not tried further: %v", got)
	}
	sum := 0.0
	for v := 1; v < len(of.variants); v++ {
		sum += of.level(v)
	}
	if sum > alpha+1e-9 || sum < alpha-1e-9 {
		t.Errorf("all variants together are wrong by %g, want %g", sum, alpha)
	}
}

// A turn that was ended at once lacks the requests that wait: those that were answered before tell nothing.
func TestCutTurnTellsNothing(t *testing.T) {
	of := three()
	of.Add(0, Measured{Judged: exactly(200, 60)})
	of.Add(1, Measured{Judged: exactly(200, 5), Ended: "stopped at once: a request took 4 s", Late: 4 * time.Second})
	if f := of.fit(tail); f.turns[0] != 1 || f.turns[1] != 0 {
		t.Errorf("%v turns count", f.turns)
	}
}
