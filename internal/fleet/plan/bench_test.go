package plan

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// levelled is a container with its whole distribution: for each phase the share of the time at each number of CPUs.
type levelled struct {
	Container
	shares  [][]float64
	request float64
}

// fleetOf draws hosts of 64 CPUs and containers as databases and stateless services have them: most are small, each busy at its own time.
func fleetOf(hosts, containers int) ([]levelled, []Host) {
	const phases = 8
	chance := rand.New(rand.NewPCG(1, 2))
	hs := make([]Host, hosts)
	for h := range hs {
		hs[h] = Host{64, 256 << 30}
	}
	all := make([]levelled, containers)
	for i := range all {
		c := &all[i]
		limit := []int{1, 2, 2, 4, 4, 8, 8, 16, 32}[chance.IntN(9)]
		c.request, c.On = float64(limit), i%hosts
		c.MemoryBytes = int64(float64(limit) * (0.2 + 2*chance.Float64()) * (1 << 30))
		noon := chance.Float64() * 2
		mean := 0.1 + 0.4*chance.Float64()
		c.shares = make([][]float64, phases)
		for k := range c.shares {
			load := mean * (0.75 - 0.25*math.Cos(2*math.Pi*(float64(k)-noon)/phases))
			shares := make([]float64, limit+1)
			// Binomial: as many threads as its limit, each at work so much of the time.
			p := math.Pow(1-load, float64(limit))
			sum := Moments{}
			for n := range shares {
				shares[n] = p
				sum.Mean += p * float64(n)
				p *= float64(limit-n) / float64(n+1) * load / (1 - load)
			}
			for n, p := range shares {
				d := float64(n) - sum.Mean
				sum.Variance, sum.Third = sum.Variance+p*d*d, sum.Third+p*d*d*d
			}
			c.shares[k], c.Demand = shares, append(c.Demand, sum)
		}
		c.MostCPUs = float64(limit)
	}
	return all, hs
}

// constant is a container that always wants so much, for rules that add up sizes.
func (c *levelled) constant(cpus float64) Container {
	return Container{On: c.On, MemoryBytes: c.MemoryBytes, Demand: []Moments{{Mean: cpus}}, MostCPUs: cpus}
}

// whole is its distribution over the day.
func (c *levelled) whole() []float64 {
	all := make([]float64, len(c.shares[0]))
	for _, shares := range c.shares {
		for n, p := range shares {
			all[n] += p / float64(len(c.shares))
		}
	}
	return all
}

// p95 is what it wants at most for 95 % of the day.
func (c *levelled) p95() float64 {
	seen := 0.0
	for n, p := range c.whole() {
		if seen += p; seen >= 0.95 {
			return float64(n)
		}
	}
	return c.request
}

// sigmas is it for a rule of mean and deviation over the day.
func (c *levelled) sigmas() Container {
	var m Moments
	all := c.whole()
	for n, p := range all {
		m.Mean += p * float64(n)
	}
	for n, p := range all {
		m.Variance += p * (float64(n) - m.Mean) * (float64(n) - m.Mean)
	}
	return Container{On: c.On, MemoryBytes: c.MemoryBytes, Demand: []Moments{m}, MostCPUs: c.request}
}

// firstFit packs in the order of the containers' sizes, as schedulers with one host after the other do.
func firstFit(containers []Container, hosts []Host, risk float64) []int {
	s := newState(nil, hosts, risk)
	s.containers, s.on, s.phases = containers, make([]int, len(containers)), len(containers[0].Demand)
	s.held = make([]Moments, s.phases*len(hosts))
	order := make([]int, len(containers))
	for i := range order {
		order[i], s.on[i] = i, -1
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.need(b), s.need(a)) })
	f := newFinder(s, s.largestFirst())
	for _, i := range order {
		if to := f.find(i, s.need(i), len(hosts)); to >= 0 {
			s.put(i, to)
		} else if !s.placeFirst(i, f.order) {
			panic("a container fits on no host")
		}
		f.changed(s.on[i])
	}
	return s.on
}

// became is how many hosts a placement uses, and for how much of the time the worst of every 50th and all of these want more than they
// have, by their whole distributions.
func became(on []int, all []levelled, hosts []Host) (used int, short, worst float64) {
	by := make([][]int, len(hosts))
	for i, h := range on {
		if h < 0 {
			panic("a container has no host")
		}
		by[h] = append(by[h], i)
	}
	looked := 0
	for h, of := range by {
		if len(of) == 0 {
			continue
		}
		if used++; used%50 != 1 {
			continue
		}
		looked++
		mine := 0.0
		for k := range all[0].shares {
			sum := []float64{1}
			for _, i := range of {
				next := make([]float64, len(sum)+len(all[i].shares[k])-1)
				for a, p := range sum {
					for b, q := range all[i].shares[k] {
						next[a+b] += p * q
					}
				}
				sum = next
			}
			for n := int(hosts[h].CPUs) + 1; n < len(sum); n++ {
				mine += sum[n] / float64(len(all[0].shares))
			}
		}
		short, worst = short+mine, max(worst, mine)
	}
	return used, short / float64(looked), worst
}

func containersOf(all []levelled, as func(*levelled) Container) (of []Container) {
	for i := range all {
		of = append(of, as(&all[i]))
	}
	return of
}

// rules are the ways to place that the page compares.
var rules = []struct {
	name  string
	place func(all []levelled, hosts []Host) []int
}{
	{"first fit on requests", func(all []levelled, hosts []Host) []int {
		return firstFit(containersOf(all, func(c *levelled) Container { return c.constant(c.request) }), hosts, 0.001)
	}},
	{"sum of p95", func(all []levelled, hosts []Host) []int {
		return firstFit(containersOf(all, func(c *levelled) Container { return c.constant(c.p95()) }), hosts, 0.001)
	}},
	{"N-sigma, N = 5", func(all []levelled, hosts []Host) []int {
		return firstFit(containersOf(all, (*levelled).sigmas), hosts, 0.5*math.Erfc(5/math.Sqrt2))
	}},
	{"this plan", func(all []levelled, hosts []Host) []int {
		return Make(containersOf(all, func(c *levelled) Container { return c.Container }), hosts, Options{Risk: 0.001, Moves: -1}).On
	}},
}

// The plan keeps to its risk where demands are whole distributions, and takes fewer hosts than requests do.
func TestRiskIsKept(t *testing.T) {
	all, hosts := fleetOf(400, 2000)
	byRequests, _, _ := became(rules[0].place(all, hosts), all, hosts)
	used, _, worst := became(rules[len(rules)-1].place(all, hosts), all, hosts)
	if worst > 0.0015 || used >= byRequests {
		t.Errorf("%d hosts, %d by requests; the worst is short for %v of the time", used, byRequests, worst)
	}
}

func BenchmarkFleet(b *testing.B) {
	for _, scale := range []struct {
		name              string
		hosts, containers int
	}{{"sixteenth", 4063, 12500}, {"quarter", 16250, 50000}, {"all", 65000, 200000}} {
		b.Run(scale.name, func(b *testing.B) {
			all, hosts := fleetOf(scale.hosts, scale.containers)
			for _, r := range rules {
				b.Run(r.name, func(b *testing.B) {
					var on []int
					for b.Loop() {
						on = r.place(all, hosts)
					}
					used, short, worst := became(on, all, hosts)
					b.ReportMetric(float64(used), "hosts")
					b.ReportMetric(1e6*short, "ppm-short")
					b.ReportMetric(1e6*worst, "ppm-short-worst")
				})
			}
			b.Run("bound", func(b *testing.B) {
				containers := containersOf(all, func(c *levelled) Container { return c.Container })
				var p Plan
				for b.Loop() {
					p = Make(containers, hosts, Options{Risk: 0.001, Moves: -1})
				}
				b.ReportMetric(float64(p.LowerBound), "bound")
				b.ReportMetric(float64(p.Hosts)/float64(p.LowerBound), "of-bound")
				b.ReportMetric(float64(p.Moves), "moves")
			})
		})
	}
}
