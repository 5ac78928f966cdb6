package provoke

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
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

// RandomMix is the mix of a seed: one to three ingredients. A small cpuset is never beside what needs an own quota: with
// fewer CPUs than the limit that quota cannot bind, and with more the cpuset cannot.
func RandomMix(seed uint64) Mix {
	r := rand.New(rand.NewPCG(seed, 0x756e7468726f74))
	m := Mix{Seed: seed, Requests: 1 + r.IntN(4)}
	n := 1 + r.IntN(3)
	for _, k := range r.Perm(len(ingredients)) {
		cause := ingredients[k]
		if len(m.Ingredients) == n || cause == diagnose.Cpuset && m.needsLimit() || m.has(diagnose.Cpuset) &&
			slices.Contains(needLimit, cause) {
			continue
		}
		m.Ingredients = append(m.Ingredients, Ingredient{cause, float64(r.IntN(101)) / 100})
	}
	slices.SortFunc(m.Ingredients, func(a, b Ingredient) int {
		return slices.Index(ingredients, a.Cause) - slices.Index(ingredients, b.Cause)
	})
	switch {
	case m.has(diagnose.Debt): // one thread's work in the kernel comes to periods of it
		m.Limit = 0.2 + 0.15*r.Float64()
	case m.has(diagnose.TinyLimit): // one thread's work is what exceeds it
		m.Limit = 0.3 + 0.3*r.Float64()
	case m.needsLimit():
		m.Limit = 0.6 + 0.35*r.Float64() // below 1, so that all CPUs at once are wider
	}
	m.Limit = float64(int(m.Limit*100)) / 100
	if m.Limit > 0 {
		m.Requests = max(1, min(m.Requests, int(calmShare*m.Limit/requestUse)))
	}
	return m
}

const (
	// calmShare of the limit is what the calm part uses at most, and requestUse what each of its threads does, in CPUs.
	calmShare  = 0.25
	requestUse = 0.05
)

func (m Mix) needsLimit() bool { return slices.ContainsFunc(needLimit, m.has) }

// rarer is the factor by which each ingredient's pauses are longer than alone. The
// ingredients then fit the limit together, but for a shortage. Otherwise they would
// make a shortage that no ingredient names.
func (m Mix) rarer() float64 {
	n := 0
	for _, i := range m.Ingredients {
		if i.Cause != diagnose.Shortage && slices.Contains(needLimit, i.Cause) {
			n++
		}
	}
	return 1 + 0.6*float64(max(0, n-1))
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
	requests := ordinaryRequests(m.Requests)
	pools := []Pool{}
	every := func(alone time.Duration) time.Duration { return time.Duration(float64(alone) * m.rarer()) }
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
			requests = Pool{Name: requests.Name, Threads: threads, Work: work, Every: every(350 * ms), Together: true}
		case diagnose.Pool:
			threads := i.count(2, 8)
			work := time.Duration(i.between(1.2, 1.8) * quota / float64(threads) * float64(ms)).Round(100 * time.Microsecond)
			pools = append(pools, Pool{Name: "GC Thread", Threads: threads, Work: work, Every: every(400 * ms), Together: true})
		case diagnose.Shortage:
			pools = append(pools, Pool{Name: "burner", Threads: i.count(2, 6), Work: 10 * ms})
		case diagnose.TinyLimit:
			work := time.Duration(i.between(1.2, 2) * quota * float64(ms)).Round(100 * time.Microsecond)
			pools = append(pools, Pool{Name: "long", Threads: 1, Work: work, Every: every(500 * ms)})
		case diagnose.Ancestor:
			pod.Limit = max(m.Limit, i.between(0.9, 0.4)) // cgroup v1 takes no child's limit above its parent's
			others = append(others, Group{Path: "pod/sibling"})
			loads = append(loads, Load{"pod/sibling", []Pool{{Name: "sidecar", Threads: 2, Work: 10 * ms}}})
		case diagnose.Debt:
			work := time.Duration(i.between(3, 6) * quota * float64(ms)).Round(100 * time.Microsecond)
			pools = append(pools, Pool{Name: "reader", Threads: 1, Work: min(work, maxWork), Every: every(1200 * ms), Kernel: true})
		case diagnose.Neighbours:
			others = append(others, Group{Path: "neighbour"})
			loads = append(loads, Load{"neighbour", []Pool{
				// In bursts: it must leave CPU time to the recorder.
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
