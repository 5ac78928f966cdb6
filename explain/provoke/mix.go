package provoke

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/diagnose"
)

// Mix is a container with a few ingredients, each of which provokes a cause, in random strengths: what a diagnosis must
// rank. Its calm part is a pool of ordinary requests under a limit that is enough for them.
type Mix struct {
	Seed        uint64
	Limit       float64 // of the target; 0: none
	Requests    int     // threads
	Ingredients []Ingredient
}

// Ingredient is one thing that is done to the target. Strength is 0 (little) to 1 (much).
type Ingredient struct {
	Cause    diagnose.Cause
	Strength float64
}

// String says both: "burst 0.40".
func (i Ingredient) String() string { return fmt.Sprintf("%s %.2f", i.Cause, i.Strength) }

// ingredients are the causes that can be added to a container, in a fixed order. The others belong to a kernel
// (slice-waste) or a host (scheduler).
var ingredients = []diagnose.Cause{
	diagnose.Burst, diagnose.Pool, diagnose.Shortage, diagnose.TinyLimit, diagnose.Ancestor, diagnose.Debt,
	diagnose.Neighbours, diagnose.Cpuset,
}

// needLimit are the causes that there are under an own quota only.
var needLimit = []diagnose.Cause{diagnose.Burst, diagnose.Pool, diagnose.Shortage, diagnose.TinyLimit, diagnose.Debt}

// RandomMix is the mix of a seed: one to three ingredients.
func RandomMix(seed uint64) Mix {
	r := rand.New(rand.NewPCG(seed, 0x756e7468726f74))
	m := Mix{Seed: seed, Requests: 1 + r.IntN(4)}
	n := 1 + r.IntN(3)
	for _, k := range r.Perm(len(ingredients))[:n] {
		m.Ingredients = append(m.Ingredients, Ingredient{ingredients[k], float64(r.IntN(101)) / 100})
	}
	slices.SortFunc(m.Ingredients, func(a, b Ingredient) int {
		return slices.Index(ingredients, a.Cause) - slices.Index(ingredients, b.Cause)
	})
	switch {
	case m.has(diagnose.TinyLimit):
		m.Limit = 0.3 + 0.3*r.Float64()
	case slices.ContainsFunc(needLimit, m.has):
		m.Limit = 0.6 + 0.8*r.Float64()
	}
	m.Limit = float64(int(m.Limit*100)) / 100
	return m
}

func (m Mix) has(c diagnose.Cause) bool {
	return slices.ContainsFunc(m.Ingredients, func(i Ingredient) bool { return i.Cause == c })
}

// between is from a to b by strength.
func (i Ingredient) between(a, b float64) float64 { return a + (b-a)*i.Strength }

func (i Ingredient) time(a, b time.Duration) time.Duration {
	return time.Duration(i.between(float64(a), float64(b))).Round(100 * time.Microsecond)
}

func (i Ingredient) count(a, b int) int { return int(i.between(float64(a), float64(b)) + 0.5) }

// Scenario is the mix without the ingredient of that index; -1: with all.
func (m Mix) Scenario(without int) Scenario {
	s := Scenario{Name: fmt.Sprintf("mix %d", m.Seed), Target: "pod/target"}
	pod, target := Group{Path: "pod"}, Group{Path: "pod/target", Limit: m.Limit}
	requests := Requests(m.Requests)
	pools := []Pool{}
	var others []Group
	var loads []Load
	for k, i := range m.Ingredients {
		if k == without {
			continue
		}
		quota := m.Limit * 100 // ms per period
		switch i.Cause {
		case diagnose.Burst:
			// The requests themselves come in bursts of up to two quotas.
			threads := i.count(4, 12)
			work := time.Duration(i.between(1.2, 2) * quota / float64(threads) * float64(ms)).Round(100 * time.Microsecond)
			requests = Pool{Name: requests.Name, Threads: threads, Work: work, Every: 350 * ms, Together: true}
		case diagnose.Pool:
			threads := i.count(2, 8)
			work := time.Duration(i.between(1, 1.8) * quota / float64(threads) * float64(ms)).Round(100 * time.Microsecond)
			pools = append(pools, Pool{Name: "GC Thread", Threads: threads, Work: work, Every: 400 * ms, Together: true})
		case diagnose.Shortage:
			pools = append(pools, Pool{Name: "burner", Threads: i.count(2, 6), Work: 10 * ms})
		case diagnose.TinyLimit:
			work := time.Duration(i.between(1.2, 2) * quota * float64(ms)).Round(100 * time.Microsecond)
			pools = append(pools, Pool{Name: "long", Threads: 1, Work: work, Every: 500 * ms})
		case diagnose.Ancestor:
			pod.Limit = max(m.Limit, i.between(0.9, 0.4)) // cgroup v1 takes no child's limit above its parent's
			others = append(others, Group{Path: "pod/sibling"})
			loads = append(loads, Load{"pod/sibling", []Pool{{Name: "sidecar", Threads: 2, Work: 10 * ms}}})
		case diagnose.Debt:
			work := time.Duration(i.between(2, 4) * quota * float64(ms)).Round(100 * time.Microsecond)
			pools = append(pools, Pool{Name: "reader", Threads: 1, Work: min(work, MaxWork), Every: 900 * ms, Kernel: true})
		case diagnose.Neighbours:
			others = append(others, Group{Path: "neighbour"})
			loads = append(loads, Load{"neighbour", []Pool{
				// In bursts: it must leave CPU time to whoever records this.
				{Name: "batch", Threads: i.count(4, 8), Work: i.time(10*ms, 16*ms), Every: 100 * ms, Together: true}}})
		case diagnose.Cpuset:
			target.CPUs = 1
			pools = append(pools, Pool{Name: "crowd", Threads: i.count(2, 5), Work: 4 * ms, Every: i.time(16*ms, 8*ms)})
		}
	}
	s.Groups = append([]Group{pod, target}, others...)
	s.Loads = append([]Load{{target.Path, append([]Pool{requests}, pools...)}}, loads...)
	return s
}
