package switchback

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

var start = time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)

// night is a service whose load and tail drift over the hours, with the effects of variants as logarithms.
type night struct {
	draw    *rand.Rand
	effects []float64
	// noise is the spread of a block by chance, drift of a random walk from block to block.
	noise, drift float64
	level        float64
}

func (n *night) block(v int) Block {
	n.level += n.drift * n.draw.NormFloat64()
	tail := 3 + n.level + n.effects[v] + n.noise*n.draw.NormFloat64()
	if n.draw.Float64() < 0.03 {
		tail += n.draw.Float64() * 2 // a compaction, a deploy of another service
	}
	return Block{LogTail: &tail, Requests: 1000}
}

// goes runs a switchback to its end.
func goes(t *testing.T, p Plan, n *night) (State, Decision) {
	t.Helper()
	s, err := Begin(p, start)
	if err != nil {
		t.Fatal(err)
	}
	for {
		round, v := s.Next()
		b := n.block(v)
		b.Round, b.Variant = round, v
		s = s.Add(b, p.Block)
		if d := s.Decide(); d.Answer != Going {
			return s, d
		}
	}
}

func plan(variants int, seed uint64) Plan {
	return Plan{Variants: variants, Block: time.Minute, Most: 8 * time.Hour, Wrong: 0.05, Seed: seed}
}

// Nights in which no remedy changes anything keep one in at most 5 of 100, though each is looked at after every block.
func TestFalseKeeps(t *testing.T) {
	nights := require.Cases(t, 200, 30)
	most := nights * 5 / 100
	if nights < 200 { // chance alone adds three deviations
		most = 5
	}
	for _, variants := range []int{1, 3} {
		kept := 0
		for seed := range uint64(nights) {
			n := &night{draw: rand.New(rand.NewPCG(seed, 1)), effects: make([]float64, variants+1), noise: 0.3, drift: 0.1}
			if _, d := goes(t, plan(variants, seed), n); d.Answer == Keep {
				kept++
			}
		}
		t.Logf("%d remedies that change nothing: %d of %d nights keep one", variants, kept, nights)
		if kept > most {
			t.Errorf("%d of %d nights keep one", kept, nights)
		}
	}
}

// A fifth off p99 is found within two hours in four of five nights.
func TestAFifthIsFound(t *testing.T) {
	const nights = 300
	found, wrong, blocks := 0, 0, 0
	for seed := range uint64(nights) {
		p := plan(1, seed)
		p.Most = 2 * time.Hour
		s, d := goes(t, p, &night{draw: rand.New(rand.NewPCG(seed, 2)), effects: []float64{0, math.Log(0.8)}, noise: 0.25, drift: 0.05})
		switch {
		case d.Answer == Keep:
			found++
			blocks += len(s.Blocks)
		case d.Answer == NoneBetter:
			wrong++
		}
	}
	t.Logf("found in %d of %d nights, after %d blocks on average; out by chance in %d", found, nights, blocks/max(1, found), wrong)
	if found < nights*8/10 || wrong > nights*5/100 {
		t.Errorf("found in %d, out in %d of %d", found, wrong, nights)
	}
}

// Of six remedies, one takes a fifth off p99. It is found within two hours of blocks in half of the nights at least: halving leaves the
// time to those that may be it.
func TestAFifthIsFoundAmongSix(t *testing.T) {
	nights := require.Cases(t, 300, 60)
	found, others, blocks := 0, 0, 0
	for seed := range uint64(nights) {
		p := plan(6, seed)
		p.Most = 2 * time.Hour
		effects := make([]float64, 7)
		effects[1+seed%6] = math.Log(0.8)
		s, d := goes(t, p, &night{draw: rand.New(rand.NewPCG(seed, 4)), effects: effects, noise: 0.25, drift: 0.05})
		switch {
		case d.Answer == Keep && effects[d.Variant] != 0:
			found++
			blocks += len(s.Blocks)
		case d.Answer == Keep:
			others++
		}
		if in := len(s.In()) - 1; in < 1 && d.Answer != NoneBetter {
			t.Fatalf("%d remedies are in: %v", in, s.Out)
		}
	}
	t.Logf("found in %d of %d nights, after %d blocks on average; another one is kept in %d", found, nights, blocks/max(1, found), others)
	if found < nights/2 || others > nights*5/100 {
		t.Errorf("found in %d, another one in %d of %d nights", found, others, nights)
	}
}

// Of several remedies that help the best is kept, and one that harms is out.
func TestTheBestIsKept(t *testing.T) {
	const nights = 100
	best, harm := 0, 0
	for seed := range uint64(nights) {
		effects := []float64{0, math.Log(0.8), math.Log(0.5), math.Log(1.5)}
		n := &night{draw: rand.New(rand.NewPCG(seed, 3)), effects: effects, noise: 0.25, drift: 0.05}
		s, d := goes(t, plan(3, seed), n)
		if d.Answer == Keep && d.Variant == 2 {
			best++
		}
		if s.Out[3] != "" {
			harm++
		}
		if d.Answer == Keep && !strings.Contains(d.Why, "times what leaving it is (") {
			t.Errorf("%q", d.Why)
		}
	}
	t.Logf("the best is kept in %d of %d nights; the harmful one was out before that in %d", best, nights, harm)
	if best < nights*9/10 {
		t.Errorf("the best is kept in %d of %d nights", best, nights)
	}
}

// Each round has each variant once, in an order that is drawn, and that another process goes on with.
func TestRounds(t *testing.T) {
	p := plan(3, 7)
	s, err := Begin(p, start)
	if err != nil {
		t.Fatal(err)
	}
	first := map[int]int{}
	for range 60 {
		var had []int
		for range 4 {
			round, v := s.Next()
			text, err := json.Marshal(s)
			var again State
			if err == nil {
				err = json.Unmarshal(text, &again)
			}
			if err != nil || !reflect.DeepEqual(again.Plan, s.Plan) {
				t.Fatal(err)
			}
			if r, w := again.Next(); r != round || w != v {
				t.Fatalf("another process goes on with %d of round %d instead of %d of %d", w, r, v, round)
			}
			had = append(had, v)
			s = s.Add(Block{Round: round, Variant: v}, p.Block)
			s.Out = make([]string, 4) // none drops out
		}
		first[had[0]]++
		slices.Sort(had)
		if !slices.Equal(had, []int{0, 1, 2, 3}) {
			t.Fatalf("%v", had)
		}
	}
	for v := range 4 {
		if first[v] < 5 {
			t.Errorf("%d is first in %d of 60 rounds", v, first[v])
		}
	}
	if d := s.Decide(); d.Answer != Going || len(s.Pairs(1)) != 0 {
		t.Errorf("of blocks without figures: %+v", d)
	}
}

// Slow requests put a variant out after its second slow block; where leaving it has as many they do not.
func TestSlowIsOut(t *testing.T) {
	type block struct{ variant, slow int }
	for name, c := range map[string]struct {
		blocks []block // of 1000 requests each
		out    []bool  // variants 1 and 2
	}{
		"slow in two blocks":            {[]block{{0, 1}, {1, 30}, {2, 0}, {0, 0}, {1, 30}, {2, 0}}, []bool{true, false}},
		"a cluster in one block":        {[]block{{0, 1}, {1, 70}, {2, 0}, {0, 0}, {1, 0}, {2, 0}}, []bool{false, false}},
		"as slow when left alone":       {[]block{{0, 25}, {1, 30}, {2, 0}, {0, 25}, {1, 30}, {2, 0}}, []bool{false, false}},
		"compared with nothing":         {[]block{{1, 30}, {1, 30}}, []bool{false, false}},
		"with half as many, left alone": {[]block{{1, 30}, {0, 0}, {1, 30}}, []bool{true, false}},
	} {
		s, err := Begin(plan(2, 1), start)
		if err != nil {
			t.Fatal(err)
		}
		had := map[int]int{}
		for _, b := range c.blocks {
			s = s.Add(Block{Round: had[b.variant], Variant: b.variant, Requests: 1000, Slow: b.slow}, time.Minute)
			had[b.variant]++
		}
		if out := []bool{s.Out[1] != "", s.Out[2] != ""}; !slices.Equal(out, c.out) {
			t.Errorf("%s: %q", name, s.Out)
		}
	}
}

// Where slow requests come in clusters, whatever is in force, they put few variants out; where they come in each block, nearly all: some
// are halved out before.
func TestClustersOfSlowRequests(t *testing.T) {
	const nights, variants = 300, 4
	for _, c := range []struct {
		of                      float64 // share of a remedy's blocks with a cluster; 3 % of those left alone have one
		atLeast, atMostPercents int
	}{{0.03, 0, 5}, {1, 95, 100}} {
		out := 0
		for seed := range uint64(nights) {
			draw := rand.New(rand.NewPCG(seed, 6))
			s, err := Begin(plan(variants, seed), start)
			if err != nil {
				t.Fatal(err)
			}
			for range 20 * (variants + 1) {
				if len(s.In()) == 1 {
					break
				}
				b := Block{Requests: 400}
				b.Round, b.Variant = s.Next()
				of := c.of
				if b.Variant == 0 {
					of = 0.03
				}
				if draw.Float64() < of {
					b.Slow = 80
				}
				s = s.Add(b, time.Minute)
			}
			for _, why := range s.Out {
				if strings.Contains(why, "twice the usual") {
					out++
				}
			}
		}
		t.Logf("with a cluster in %.0f %% of blocks %d of %d variants are out", 100*c.of, out, nights*variants)
		if out*100 < c.atLeast*nights*variants || out*100 > c.atMostPercents*nights*variants {
			t.Errorf("%d of %d", out, nights*variants)
		}
	}
}

// The interval has the true effect in it at all looks, but in few nights.
func TestIntervalAtAnyTime(t *testing.T) {
	const nights, effect = 200, -0.4
	missed := 0
	for seed := range uint64(nights) {
		draw := rand.New(rand.NewPCG(seed, 4))
		var pairs []float64
		for i := range 60 {
			pairs = append(pairs, effect+0.35*draw.NormFloat64())
			if i%10 != 9 {
				continue
			}
			if low, high := Interval(pairs, 0.05); low > effect || high < effect {
				missed++
				break
			}
		}
	}
	t.Logf("%d of %d nights have a look at which the interval misses", missed, nights)
	if missed > nights*5/100 {
		t.Errorf("%d of %d", missed, nights)
	}
	if low, high := Interval(nil, 0.05); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("%v to %v of nothing", low, high)
	}
}

// What is kept and still helps stays; what no longer does is undone, within some weeks of blocks that are left alone.
func TestHoldback(t *testing.T) {
	const times, perDay = 100, 24 * 60 / holdbackOf
	undone, needed, undoneWrongly := 0, 0, 0
	for seed := range uint64(times) {
		draw := rand.New(rand.NewPCG(seed, 5))
		helps, gone := Kept{Plan: plan(1, seed), Promised: -0.5}, Kept{Plan: plan(1, seed), Promised: -0.5}
		ended := false
		for i := range 3 * perDay {
			helps, gone = helps.Add(-0.5+0.35*draw.NormFloat64()), gone.Add(0.35*draw.NormFloat64())
			if !ended && !gone.Still() {
				ended = true
				undone, needed = undone+1, needed+i
			}
		}
		if !helps.Still() {
			undoneWrongly++
		}
		if seed == 0 && !strings.Contains(helps.Words(), "promised 0.61") {
			t.Errorf("%q", helps.Words())
		}
	}
	t.Logf("undone in %d of %d, after %d pairs on average; what helps is undone in %d", undone, times, needed/max(1, undone), undoneWrongly)
	if undone < times*95/100 || undoneWrongly > times*5/100 {
		t.Errorf("undone %d, wrongly %d of %d", undone, undoneWrongly, times)
	}
	p, alone := plan(1, 3), 0
	for block := range 2000 {
		if p.Holdback(block) {
			alone++
		}
	}
	if alone != 2000/holdbackOf {
		t.Errorf("%d of 2000 blocks are left alone", alone)
	}
}

func TestPlans(t *testing.T) {
	for name, p := range map[string]Plan{
		"no variants": {Block: time.Minute, Most: time.Hour, Wrong: 0.05}, "a short block": {Variants: 1, Block: time.Second, Most: time.Hour, Wrong: 0.05},
		"no time": {Variants: 3, Block: time.Minute, Most: time.Minute, Wrong: 0.05}, "never wrong": {Variants: 1, Block: time.Minute, Most: time.Hour},
		"no number": {Variants: 1, Block: time.Minute, Most: time.Hour, Wrong: math.NaN()},
	} {
		if _, err := Begin(p, start); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
