package canary

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var morning = time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)

// world is a workload whose pods' quantiles vary, and change where a pod is treated.
type world struct {
	plan  Plan
	state State
	now   time.Time
	pods  []Pod
	// allowed is of each PodDisruptionBudget, guard the guard's value.
	allowed map[string]int
	guard   *float64
	// noise is one pod's change from before to now by itself, as a logarithm; effect what treatment multiplies by, drift what all do.
	noise         func() float64
	effect, drift float64
	// answered is how many pods' quantiles are known; 0: all.
	answered int
	rand     *rand.Rand
	made     int
}

func newWorld(seed uint64, pods, nodes int) *world {
	w := &world{plan: Plan{Share: 0.1, Watch: 15 * time.Minute, Bound: 1}, now: morning, guard: new(0.5), effect: 1, drift: 1.5,
		rand: rand.New(rand.NewPCG(seed, 7)), allowed: map[string]int{}}
	w.noise = func() float64 { return 0.2 * w.rand.NormFloat64() }
	for range pods {
		w.add(fmt.Sprint("node-", w.rand.IntN(nodes)), "")
	}
	return w
}

// replace has another pod in place of each of some.
func (w *world) replace(of []Pod) {
	for i := range of {
		w.add(of[i].Node, of[i].Budget)
		of[i], w.pods = w.pods[len(w.pods)-1], w.pods[:len(w.pods)-1]
	}
}

func (w *world) add(node, budget string) {
	w.made++
	w.pods = append(w.pods, Pod{UID: fmt.Sprintf("uid-%d-%d", w.made, w.rand.Uint64()), Node: node, Workload: "Deployment cart",
		Created: w.now, Budget: budget})
}

// treated are the pods that have the remedy.
func (w *world) treated() (all []Pod) {
	for _, p := range w.pods {
		if w.state.Treats(p) {
			all = append(all, p)
		}
	}
	return all
}

// seen is what a controller sees; chance is what it draws.
func (w *world) seen(chance int64) Seen {
	pods := make([]Pod, len(w.pods))
	for i, p := range w.pods {
		if w.state.Due(w.plan, w.now) && !p.Created.After(w.state.Begun) && !p.Pending {
			now := 20 * w.drift * math.Exp(w.noise())
			if w.state.Treats(p) {
				now *= w.effect
			}
			if p.Before = new(20.0); w.answered == 0 || i < w.answered {
				p.After = &now
			}
		}
		pods[i] = p
	}
	return Seen{Now: w.now, Chance: chance, Pods: pods, Disruptions: w.allowed, Guard: w.guard}
}

// tick decides once, a while after the last time.
func (w *world) tick(after time.Duration) {
	w.now = w.now.Add(after)
	w.state = Next(w.plan, w.state, "rules", w.seen(w.rand.Int64N(places)))
}

// run ticks until it is over.
func (w *world) run(t *testing.T) string {
	t.Helper()
	for range 500 {
		if w.tick(5 * time.Minute); w.state.Phase == Kept || w.state.Phase == Reverted {
			return w.state.Phase
		}
	}
	t.Fatalf("no end: %+v", w.state)
	return ""
}

// kept is how many of so many canaries are kept.
func kept(t *testing.T, runs int, make func(seed uint64) *world) (n int) {
	t.Helper()
	for seed := range runs {
		if make(uint64(seed)).run(t) == Kept {
			n++
		}
	}
	return n
}

// TestAlike: where treatment changes nothing, at most 5 % are kept, whatever the pods' variation is. 2.5 % of 1,000 are 25 with a
// deviation of 5, so that correct code is above 50 less than once in 10,000 runs.
func TestAlike(t *testing.T) {
	for name, noise := range map[string]func(w *world) float64{
		"normal":     func(w *world) float64 { return 0.2 * w.rand.NormFloat64() },
		"long tails": func(w *world) float64 { return 0.2 * w.rand.NormFloat64() / math.Sqrt(w.rand.ExpFloat64()) },
		"skewed":     func(w *world) float64 { return 0.3 * w.rand.ExpFloat64() },
	} {
		n := kept(t, 1000, func(seed uint64) *world {
			w := newWorld(seed, 40, 40)
			w.noise = func() float64 { return noise(w) }
			return w
		})
		if n > 50 {
			t.Errorf("%s: %d of 1,000 remedies that do nothing are kept", name, n)
		}
		t.Logf("%s: %d of 1,000 kept", name, n)
	}
}

// TestHelps: a fifth off is found. 93 % of 300 are 279 with a deviation of 4.4.
func TestHelps(t *testing.T) {
	n := kept(t, 300, func(seed uint64) *world {
		w := newWorld(seed, 40, 40)
		w.effect = 0.8
		return w
	})
	if n < 240 {
		t.Errorf("%d of 300 remedies that take a fifth off are kept", n)
	}
	t.Logf("%d of 300 kept", n)
}

// TestHarms: what doubles the quantile is taken back after the first watch, and no more pods than the first share ever had it.
func TestHarms(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(seed, 40, 40)
		w.effect = 2
		w.noise = func() float64 { return 0.1 * w.rand.NormFloat64() }
		touched := map[string]bool{}
		for w.state.Phase != Reverted {
			w.tick(5 * time.Minute)
			for _, p := range w.treated() {
				touched[p.UID] = true
			}
			if w.state.Phase == Kept || w.now.Sub(morning) > 3*time.Hour {
				t.Fatalf("seed %d: %+v", seed, w.state)
			}
		}
		// It waits for one watch, and is in force for one.
		if took := w.now.Sub(morning) - 5*time.Minute; took != 2*w.plan.Watch || len(touched) != 4 || len(w.treated()) != 0 {
			t.Fatalf("seed %d: %d pods touched, taken back after %v, %d left", seed, len(touched), took, len(w.treated()))
		}
		if !strings.HasPrefix(w.state.Why, "taken back: ") || !strings.Contains(w.state.Why, "times as long") {
			t.Fatal(w.state.Why)
		}
	}
}

// TestCooldown: it is taken back once, and nothing is drawn until the cooldown is over; then in another order.
func TestCooldown(t *testing.T) {
	w := newWorld(1, 40, 40)
	w.effect = 3
	w.run(t)
	at, first := w.now, w.state
	for w.now.Sub(at) < Cooldown-time.Hour {
		if w.tick(30 * time.Minute); !reflect.DeepEqual(w.state, first) {
			t.Fatalf("%v later: %+v", w.now.Sub(at), w.state)
		}
	}
	w.tick(2 * time.Hour)
	if w.state.Phase != Watches || w.state.Seed == first.Seed || len(w.treated()) != 4 {
		t.Errorf("%+v", w.state)
	}
}

// TestAnotherWatch: whoever changes how long a step is watched, in the middle of one, loses nothing.
func TestAnotherWatch(t *testing.T) {
	for _, c := range []struct{ from, to time.Duration }{{5 * time.Minute, 30 * time.Minute}, {30 * time.Minute, 5 * time.Minute}} {
		w := newWorld(1, 40, 40)
		w.plan.Watch, w.effect, w.noise = c.from, 0.5, func() float64 { return 0.1 * w.rand.NormFloat64() }
		for w.state.Phase != Watches {
			w.tick(time.Minute)
		}
		w.tick(time.Minute)
		w.plan.Watch = c.to
		for w.state.Phase != Kept {
			if w.tick(time.Minute); w.state.Phase == Reverted || w.now.Sub(morning) > 24*time.Hour {
				t.Fatalf("from %v to %v: %+v", c.from, c.to, w.state)
			}
		}
	}
}

// TestDeployment: all pods are replaced, one half just before the second draw, the other one after it. Of those that are treated then
// it is not known how they were before: others are drawn, and nothing is held against the remedy.
func TestDeployment(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(seed, 40, 40)
		w.effect, w.noise = 0.5, func() float64 { return 0.1 * w.rand.NormFloat64() }
		for w.state.Phase != Watches {
			w.tick(5 * time.Minute)
		}
		w.tick(10 * time.Minute)
		w.replace(w.pods[:20])
		w.tick(5 * time.Minute)
		w.tick(5 * time.Minute)
		w.replace(w.pods[20:])
		if w.tick(time.Minute); w.state.Phase != Waits || len(w.treated()) > 0 {
			t.Fatalf("seed %d: %+v", seed, w.state)
		}
		if w.run(t) != Kept {
			t.Fatalf("seed %d: %+v", seed, w.state)
		}
	}
}

// TestDrawnBeforeItRuns: a pod that was drawn while it was pending runs soon: its draw is not thrown away before it can.
func TestDrawnBeforeItRuns(t *testing.T) {
	met := 0
	for seed := range uint64(60) {
		w := newWorld(seed, 10, 10)
		for range 5 {
			w.add("", "")
			w.pods[len(w.pods)-1].Pending = true
		}
		for w.state.Phase != Watches {
			w.tick(time.Minute)
		}
		if slices.ContainsFunc(w.treated(), func(p Pod) bool { return !p.Pending }) {
			continue
		}
		met++
		if w.tick(time.Minute); w.state.Phase != Watches {
			t.Errorf("seed %d: %+v", seed, w.state)
		}
	}
	if met == 0 {
		t.Error("no draw was of pending pods alone")
	}
}

// TestPartOfAnAnswer: where the figures of a few pods are there first, nothing is decided by them.
func TestPartOfAnAnswer(t *testing.T) {
	for seed := range uint64(100) {
		w := newWorld(seed, 40, 40)
		w.plan.Share, w.effect, w.noise = MostShare, 0.5, func() float64 { return 0.1 * w.rand.NormFloat64() }
		for w.state.Phase != Watches {
			w.tick(time.Minute)
		}
		w.answered = 3
		if w.tick(w.plan.Watch); w.state.Phase != Watches {
			t.Fatalf("seed %d: %+v", seed, w.state)
		}
		w.answered = 0
		if w.tick(time.Minute); w.state.Phase != Finishes {
			t.Fatalf("seed %d: %+v", seed, w.state)
		}
	}
}

// TestGrows: where a pod comes and one goes in each watch, also in the last step, the end comes no later.
func TestGrows(t *testing.T) {
	w := newWorld(1, 40, 40)
	w.effect, w.noise = 0.5, func() float64 { return 0.1 * w.rand.NormFloat64() }
	for range 10 {
		w.tick(w.plan.Watch - time.Minute)
		w.replace(w.pods[w.rand.IntN(len(w.pods)):][:1])
		if w.tick(time.Minute); w.state.Phase == Kept {
			return
		}
	}
	t.Errorf("no end: %+v", w.state)
}

// TestReplacedAtTheEnd: all pods are replaced after the remedy was shown to be better: those that came get it, and it is kept.
func TestReplacedAtTheEnd(t *testing.T) {
	w := newWorld(1, 40, 40)
	w.effect, w.noise = 0.5, func() float64 { return 0.1 * w.rand.NormFloat64() }
	for w.state.Phase != Finishes {
		w.tick(5 * time.Minute)
	}
	w.tick(time.Minute)
	w.replace(w.pods)
	if w.tick(time.Minute); w.state.Phase != Finishes || len(w.treated()) != 40 {
		t.Errorf("%d pods are treated: %+v", len(w.treated()), w.state)
	}
	if why := w.state.Why; !strings.HasPrefix(why, "better, so that the other pods get it: ") ||
		!strings.HasSuffix(why, "; 40 of 40 pods have it") {
		t.Error(why)
	}
	if w.run(t) != Kept || strings.Contains(w.state.Why, "have it") {
		t.Errorf("%+v", w.state)
	}
}

// TestHeldAtTheEnd: the reason says how many pods have it by now, and why no more.
func TestHeldAtTheEnd(t *testing.T) {
	w := newWorld(1, 40, 40)
	w.effect, w.noise, w.allowed["cart"] = 0.5, func() float64 { return 0.1 * w.rand.NormFloat64() }, 1
	for i := range w.pods {
		w.pods[i].Budget = "cart"
	}
	for w.state.Phase != Finishes {
		w.tick(5 * time.Minute)
	}
	for _, end := range []string{"; 39 of 40 pods have it: a PodDisruptionBudget's last pod is another step's", "; 40 of 40 pods have it"} {
		if !strings.HasSuffix(w.state.Why, end) {
			t.Error(w.state.Why)
		}
		w.tick(w.plan.Watch)
	}
	if w.state.Phase != Kept {
		t.Errorf("%+v", w.state)
	}
}

// TestDecisions: each reason why nothing is drawn, or all is taken back.
func TestDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		pods   int
		change func(w *world)
		drawn  func(w *world) // after the first draw
		phase  string
		says   string
	}{
		"one pod":         {pods: 1, phase: Waits, says: "too few pods: 1 pod, and a canary needs 4"},
		"no pod":          {pods: 0, phase: Waits, says: "too few pods: 0 pods"},
		"less than a pod": {pods: 8, phase: Waits, says: "too few pods: 10 % of 8 are less than one; give a share of 13 % or more"},
		"two workloads": {pods: 20, change: func(w *world) { w.pods[3].Workload = "StatefulSet db" }, phase: Waits,
			says: "2 workloads, such as Deployment cart and StatefulSet db: give each"},
		"no guard": {pods: 20, change: func(w *world) { w.guard = nil }, phase: Waits, says: "the guard cannot be read"},
		"guard is no number": {pods: 20, change: func(w *world) { w.guard = new(math.NaN()) }, phase: Waits,
			says: "the guard cannot be read"},
		"guard above": {pods: 20, change: func(w *world) { w.guard = new(2.0) }, phase: Waits, says: "above its bound of 1 before"},
		"no disruption": {pods: 20, change: func(w *world) {
			for i := range w.pods {
				w.pods[i].Budget = "cart"
			}
		}, phase: Waits, says: "no pod can be drawn: a PodDisruptionBudget allows no disruption"},
		"drawn": {pods: 20, phase: Watches, says: "2 of 20 pods are treated at first"},
		"guard rises": {pods: 20, drawn: func(w *world) { w.guard = new(2.0) }, phase: Reverted,
			says: "taken back: the guard is 2, above its bound of 1"},
		"guard is silent": {pods: 20, drawn: func(w *world) { w.guard = nil; w.now = w.now.Add(2 * w.plan.Watch) }, phase: Reverted,
			says: "the guard could not be read"},
		"nobody judged it": {pods: 20, drawn: func(w *world) { w.now = w.now.Add(time.Hour) }, phase: Reverted,
			says: "nobody judged it in time"},
		"not measured": {pods: 20, drawn: func(w *world) {
			w.noise = func() float64 { return math.Inf(1) }
			w.now = w.now.Add(2 * w.plan.Watch)
		}, phase: Reverted, says: "0 treated and 0 other pods could be compared in two watches"},
		"another workload comes": {pods: 20, drawn: func(w *world) {
			w.add("node-1", "")
			w.pods[20].Workload = "StatefulSet db"
			w.now = w.now.Add(w.plan.Watch)
		}, phase: Watches, says: "no more pods are drawn: its rules match pods of 2 workloads"},
		"three are left": {pods: 20, drawn: func(w *world) {
			slices.SortFunc(w.pods, func(a, b Pod) int { return cmp.Compare(place(w.state.Seed, a.UID), place(w.state.Seed, b.UID)) })
			w.pods, w.now = w.pods[1:4], w.now.Add(w.plan.Watch)
		}, phase: Watches, says: "no more pods are drawn: too few pods: 3 pods"},
		"treated are gone": {pods: 20, drawn: func(w *world) {
			var left []Pod
			for _, p := range w.pods {
				if !w.state.Treats(p) {
					left = append(left, p)
				}
			}
			w.pods = left
		}, phase: Waits, says: "all treated pods are gone: others are drawn"},
	} {
		w := newWorld(3, c.pods, 10)
		if c.change != nil {
			c.change(w)
		}
		w.tick(0)
		if w.state.Phase != Waits || len(w.treated()) > 0 {
			t.Fatalf("%s: it begins with %+v", name, w.state)
		}
		w.tick(w.plan.Watch)
		if c.drawn != nil {
			if w.state.Phase != Watches {
				t.Fatalf("%s: %+v", name, w.state)
			}
			c.drawn(w)
			w.tick(time.Minute)
		}
		if w.state.Phase != c.phase || !strings.Contains(w.state.Why, c.says) || c.phase != Watches && len(w.treated()) > 0 {
			t.Errorf("%s: %s: %s", name, w.state.Phase, w.state.Why)
		}
	}
}

// TestAnother: what is tried changed. All is taken back, and it begins anew.
func TestAnother(t *testing.T) {
	w := newWorld(1, 40, 40)
	w.effect = 0.3
	if w.run(t) != Kept || len(w.treated()) != 40 {
		t.Fatalf("%+v", w.state)
	}
	w.add("node-1", "")
	if len(w.treated()) != 41 {
		t.Error("a pod that comes later is not treated where the remedy is kept")
	}
	next := Next(w.plan, w.state, "other rules", w.seen(1))
	if next.Phase != Waits || next.Tried != "other rules" || next.Again != w.now.Add(w.plan.Watch) {
		t.Errorf("%+v", next)
	}
}

// TestBounds: with any workload, pods that come, go and move, nodes and PodDisruptionBudgets, no step goes beyond what it may, and
// a controller that is killed after each decision and goes on from what was kept decides the same.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 60).Draw(t, "pods"), rapid.IntRange(1, 30).Draw(t, "nodes"))
		w.plan.Share = rapid.Float64Range(0.01, MostShare).Draw(t, "share")
		w.plan.Nodes = rapid.IntRange(0, 5).Draw(t, "nodes at once")
		w.effect = rapid.SampledFrom([]float64{0.5, 0.8, 1, 1.2, 3}).Draw(t, "effect")
		budgets := rapid.IntRange(0, 3).Draw(t, "budgets")
		budget := func() string {
			return []string{"", "pdb-1", "pdb-2", "pdb-3"}[w.rand.IntN(budgets+1)]
		}
		for i := range w.pods {
			w.pods[i].Budget = budget()
		}
		for range rapid.IntRange(1, 60).Draw(t, "ticks") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				w.add("node-new", budget())
			case 1:
				if len(w.pods) > 0 {
					w.pods = w.pods[1:]
				}
			case 2: // it moves: another pod on another node
				if len(w.pods) > 0 {
					w.pods = w.pods[1:]
					w.add("node-2", budget())
				}
			case 3:
				w.guard = []*float64{nil, new(0.5), new(0.5), new(2.0)}[w.rand.IntN(4)]
			case 4:
				w.plan.Nodes = w.rand.IntN(4)
			case 5: // it grows: many pods of one second
				for i := range w.rand.IntN(20) {
					w.add(fmt.Sprint("node-", i%3), budget())
				}
			case 6: // it has no node yet
				w.add("", budget())
				w.pods[len(w.pods)-1].Pending = true
			case 7: // it gets one, and runs
				if i := slices.IndexFunc(w.pods, func(p Pod) bool { return p.Pending }); i >= 0 {
					w.pods[i].Node, w.pods[i].Pending = "node-3", false
				}
			}
			for b := range budgets {
				w.allowed[fmt.Sprint("pdb-", b+1)] = w.rand.IntN(3)
			}
			was, before, had := w.state, w.treated(), map[string]bool{}
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes")) * time.Minute)
			seen := w.seen(w.rand.Int64N(places))
			w.state = Next(w.plan, was, "rules", seen)
			if again := Next(w.plan, kill(t, was), "rules", seen); !reflect.DeepEqual(kill(t, again), kill(t, w.state)) {
				t.Fatalf("killed after %+v it decides %+v, not %+v", was, again, w.state)
			}
			nodes, fresh, remaining := map[string]bool{}, map[string]int{}, map[string]int{}
			for _, p := range before {
				had[p.UID], nodes[p.Node] = true, true
			}
			known := len(nodes)
			for _, p := range w.pods {
				if !had[p.UID] {
					remaining[p.Budget]++
				}
			}
			treated := w.treated()
			if w.state.Trying() && w.state.Seed == was.Seed && slices.ContainsFunc(before, func(p Pod) bool { return !w.state.Treats(p) }) {
				t.Fatalf("a treated pod became control: %+v, then %+v", was, w.state)
			}
			for _, p := range treated {
				if !had[p.UID] {
					nodes[p.Node] = true
					fresh[p.Budget]++
				}
			}
			if w.state.Phase == Kept {
				for _, p := range treated {
					if !had[p.UID] && p.Created.Before(was.Drawn) {
						t.Fatalf("a pod of before the last draw was never watched: %+v", p)
					}
				}
				return
			}
			if w.state.Why == "" || len(w.state.Why) > 400 {
				t.Fatalf("no reason, or a long one: %+v", w.state)
			}
			if w.plan.Nodes > 0 && len(nodes)-known > w.plan.Nodes {
				t.Fatalf("a step begins on %d nodes, more than %d", len(nodes)-known, w.plan.Nodes)
			}
			for b, n := range fresh {
				if b != "" && (w.allowed[b] == 0 || n > 1 && n >= remaining[b]) {
					t.Fatalf("%s allows %d: %d of %d pods drawn", b, w.allowed[b], n, remaining[b])
				}
			}
			if w.state.Phase == Watches && !w.state.Drawn.Equal(was.Drawn) && len(fresh) > 0 {
				share := min(w.plan.Share*math.Exp2(float64(w.state.Step)), MostShare)
				if n := seen.running(); float64(len(treated)) > share*float64(n)+1e-6 {
					t.Fatalf("%d of %d pods that run are treated at a share of %v", len(treated), n, share)
				}
			} else if len(treated) > len(before) && w.state.Phase != Finishes {
				t.Fatalf("%d pods are treated that were not drawn: %+v", len(treated)-len(before), w.state)
			}
			if !w.state.Trying() && len(treated) > 0 {
				t.Fatalf("in phase %s %d pods are treated", w.state.Phase, len(treated))
			}
			if w.state.Trying() && !w.now.Before(w.state.Until) {
				t.Fatalf("it is in force after %v", w.state.Until)
			}
		}
	})
}

// kill is a state as the next controller reads it.
func kill(t interface{ Fatal(...any) }, s State) (read State) {
	kept, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(kept, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestCompare: the example of two sides whose means and deviations are known.
func TestCompare(t *testing.T) {
	pod := func(treated bool, log float64) Pod {
		return Pod{UID: fmt.Sprint(treated), Before: new(10.0), After: new(10 * math.Exp(log))}
	}
	pods := []Pod{pod(false, 0), pod(false, 0.2), pod(true, -0.3), pod(true, -0.1), {UID: "true"},
		{UID: "false", Before: new(0.0), After: new(1.0)}}
	d, ok := Compare(pods, func(p Pod) bool { return p.UID == "true" })
	// The means are 0.3 apart, the pooled deviation is 0.1414, its error 0.1414, and t of 2 degrees 4.303.
	if !ok || d.Treated != 2 || d.Control != 2 || math.Abs(math.Log(d.Times)+0.3) > 1e-9 ||
		math.Abs(math.Log(d.High/d.Low)-2*4.3027*0.14142) > 1e-3 {
		t.Errorf("%+v, %v", d, ok)
	}
	if _, ok := Compare(pods[:2], func(p Pod) bool { return p.UID == "true" }); ok {
		t.Error("pods are compared with none")
	}
}
