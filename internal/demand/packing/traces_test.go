package packing

import (
	"bufio"
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// traced is a machine of a public trace: how many CPUs it used in each five minutes, those that a rule sees and those
// that come then.
type traced struct{ seen, came []float64 }

// traceCPUs is what each machine may use at most, and hosts are as wide as sixteen of them.
const (
	traceCPUs = 1.0
	hostWidth = 16.0
	// perDay is how many samples a file has, one in five minutes.
	perDay = 288
)

// readTrace reads a file of percents of the machine's CPU, one in a line; what follows on it is not read. nil: it is
// none of a day.
func readTrace(name string) (cpus []float64) {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		percent, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || percent < 0 {
			return nil
		}
		cpus = append(cpus, min(percent/100, 1)*traceCPUs)
	}
	if len(cpus) != perDay {
		return nil
	}
	return cpus
}

// traces are the comparisons that a folder of traces allows, by name: in each file the first half of the day is seen
// and the second comes; and of machines that are in folders of two days that follow each other the first day is seen.
func traces(dir string) map[string][]traced {
	days := map[string]map[string][]float64{} // by folder and name
	_ = filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if cpus := readTrace(name); cpus != nil {
				folder := filepath.Dir(name)
				if days[folder] == nil {
					days[folder] = map[string][]float64{}
				}
				days[folder][filepath.Base(name)] = cpus
			}
		}
		return nil
	})
	all := map[string][]traced{}
	for folder, of := range days {
		set, _, _ := strings.Cut(strings.TrimPrefix(folder, dir+"/"), "/")
		half := set + ", half a day from the half before"
		for _, cpus := range of {
			all[half] = append(all[half], traced{cpus[:perDay/2], cpus[perDay/2:]})
		}
		day, err := time.Parse("20060102", filepath.Base(folder))
		if err != nil {
			continue
		}
		for name, cpus := range days[filepath.Join(filepath.Dir(folder), day.AddDate(0, 0, 1).Format("20060102"))] {
			if seen := of[name]; seen != nil {
				next := set + ", a day from the day before"
				all[next] = append(all[next], traced{seen, cpus})
			}
		}
	}
	for _, of := range all {
		slices.SortFunc(of, func(a, b traced) int { return slices.Compare(a.seen, b.seen) })
	}
	return all
}

// moments are those of what is seen, in as many parts of it as there are phases.
func (c *traced) moments(phases int) (of []Moments) {
	for part := range slices.Chunk(c.seen, len(c.seen)/phases) {
		var m Moments
		for _, v := range part {
			m.Mean += v / float64(len(part))
		}
		for _, v := range part {
			d := v - m.Mean
			m.Variance, m.Third = m.Variance+d*d/float64(len(part)), m.Third+d*d*d/float64(len(part))
		}
		of = append(of, m)
	}
	return of
}

// oracle packs by what comes: the largest peak first, on the first host that never has too little.
func oracle(all []traced, hosts int) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(slices.Max(all[b].came), slices.Max(all[a].came)) })
	on, sums := make([]int, len(all)), make([][]float64, hosts)
	for _, i := range order {
		for h := range sums {
			if sums[h] == nil {
				sums[h] = make([]float64, len(all[i].came))
			}
			room := true
			for k, v := range all[i].came {
				if sums[h][k]+v > hostWidth+rounding {
					room = false
					break
				}
			}
			if room {
				for k, v := range all[i].came {
					sums[h][k] += v
				}
				on[i] = h
				break
			}
		}
	}
	return on
}

// after is what becomes of a placement: hosts used, and the share of their time in which they want more than they have.
func after(on []int, all []traced) (used int, short float64, ever int) {
	sums := map[int][]float64{}
	for i, h := range on {
		if sums[h] == nil {
			sums[h] = make([]float64, len(all[i].came))
		}
		for k, v := range all[i].came {
			sums[h][k] += v
		}
	}
	for _, sum := range sums {
		n := 0
		for _, v := range sum {
			if v > hostWidth+rounding {
				n++
			}
		}
		if short += float64(n) / float64(len(sum)); n > 0 {
			ever++
		}
	}
	return len(sums), short / float64(len(sums)), ever
}

// arrival is a rule of a scheduler, by which machines come one at a time onto the host that it scores highest of those that hold
// them, or else onto a new one. add puts one on a host.
type arrival[host any] struct {
	score func(h *host, c *traced) (score float64, holds bool)
	add   func(h *host, c *traced)
}

// place lets all come in an order by chance: that of the first seed.
func (a arrival[host]) place(all []traced) []int {
	on, hosts := make([]int, len(all)), []*host{}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(all)) {
		best, most := -1, 0.0
		for h := range hosts {
			if score, holds := a.score(hosts[h], &all[i]); holds && (best < 0 || score > most) {
				best, most = h, score
			}
		}
		if best < 0 {
			best, hosts = len(hosts), append(hosts, new(host))
		}
		a.add(hosts[best], &all[i])
		on[i] = best
	}
	return on
}

// byRequests is kube-scheduler's rule with its strategy MostAllocated, where requests count for so much.
func byRequests(factor float64) arrival[float64] {
	return arrival[float64]{
		func(h *float64, _ *traced) (float64, bool) { return *h, Fits(*h+factor*traceCPUs, hostWidth) },
		func(h *float64, _ *traced) { *h += factor * traceCPUs },
	}
}

// byUse is the rule of Koordinator's plugin LoadAwareScheduling by its defaults (docs of Koordinator 1.6: usageThresholds cpu 65,
// estimatedScalingFactors cpu 85): the mean use of what runs on a host and 85 % of a new one's request are at most 65 % of its CPUs. Its
// score is turned round, so that few hosts are used.
func byUse() arrival[float64] {
	return arrival[float64]{
		func(h *float64, _ *traced) (float64, bool) { return *h, Fits(*h+0.85*traceCPUs, 0.65*hostWidth) },
		func(h *float64, c *traced) { *h += c.moments(1)[0].Mean },
	}
}

// byDemand is unthrottle-scheduler's rule with its scoring MostWanted, of machines that were seen before.
func byDemand(risk, reserve float64) arrival[Pooled] {
	r := NewRule(risk)
	one := map[*traced]*Pooled{}
	pooled := func(c *traced) *Pooled {
		if one[c] == nil {
			one[c] = &Pooled{}
			r.Add(one[c], c.moments(8), traceCPUs)
		}
		return one[c]
	}
	return arrival[Pooled]{
		func(h *Pooled, c *traced) (float64, bool) {
			wants := r.WantsWith(h, pooled(c))
			return wants, Fits(wants, (1-reserve)*hostWidth)
		},
		func(h *Pooled, c *traced) { r.Add(h, c.moments(8), traceCPUs) },
	}
}

// BenchmarkTraces compares the rules on public traces, in the folder that UNTHROTTLE_TRACES names:
// docs/reference/fleet-plan.md has which, and what came of it.
func BenchmarkTraces(b *testing.B) {
	dir := os.Getenv("UNTHROTTLE_TRACES")
	if dir == "" {
		b.Skip("UNTHROTTLE_TRACES names no folder of traces")
	}
	found := traces(filepath.Clean(dir))
	if len(found) == 0 {
		b.Fatalf("%s: no file of %d percents, one in a line", dir, perDay)
	}
	of := func(all []traced, as func(*traced) Container) (containers []Container) {
		for i := range all {
			c := as(&all[i])
			c.On, c.MostCPUs = i, cmp.Or(c.MostCPUs, traceCPUs)
			containers = append(containers, c)
		}
		return containers
	}
	constant := func(cpus float64) Container { return Container{Demand: []Moments{{Mean: cpus}}, MostCPUs: cpus} }
	for name, all := range found {
		hosts := slices.Repeat([]Host{{CPUs: hostWidth}}, len(all))
		const phases = 8
		planned := func(risk, reserve float64) func() []int {
			return func() []int {
				return Make(of(all, func(c *traced) Container { return Container{Demand: c.moments(phases)} }), hosts,
					Options{Risk: risk, Reserve: reserve, Moves: -1}).On
			}
		}
		for _, r := range []struct {
			name  string
			place func() []int
		}{
			{"first fit on requests", func() []int {
				return firstFit(of(all, func(*traced) Container { return constant(traceCPUs) }), hosts, 0.001)
			}},
			{"sum of p95", func() []int {
				return firstFit(of(all, func(c *traced) Container {
					return constant(slices.Sorted(slices.Values(c.seen))[len(c.seen)*95/100])
				}), hosts, 0.001)
			}},
			{"N-sigma, N = 5", func() []int {
				return firstFit(of(all, func(c *traced) Container {
					m := c.moments(1)
					m[0].Third = 0
					return Container{Demand: m}
				}), hosts, 0.5*math.Erfc(5/math.Sqrt2))
			}},
			{"this plan, risk 0.1 %", planned(0.001, 0)},
			{"this plan, risk 0.1 %, reserve 10 %", planned(0.001, 0.1)},
			{"this plan, risk 0.1 %, reserve 20 %", planned(0.001, 0.2)},
			{"one at a time, on requests", func() []int { return byRequests(1).place(all) }},
			{"one at a time, on half of the requests", func() []int { return byRequests(0.5).place(all) }},
			{"one at a time, on a sixth of the requests", func() []int { return byRequests(1. / 6).place(all) }},
			{"one at a time, load-aware", func() []int { return byUse().place(all) }},
			{"one at a time, on demand, risk 0.1 %", func() []int { return byDemand(0.001, 0).place(all) }},
			{"one at a time, on demand, risk 0.1 %, reserve 10 %", func() []int { return byDemand(0.001, 0.1).place(all) }},
			{"one at a time, on demand, risk 0.1 %, reserve 20 %", func() []int { return byDemand(0.001, 0.2).place(all) }},
			{"oracle", func() []int { return oracle(all, len(hosts)) }},
		} {
			b.Run(name+"/"+r.name, func(b *testing.B) {
				var on []int
				for b.Loop() {
					on = r.place()
				}
				used, short, ever := after(on, all)
				b.ReportMetric(float64(len(all)), "machines")
				b.ReportMetric(float64(used), "hosts")
				b.ReportMetric(1e6*short, "ppm-short")
				b.ReportMetric(float64(ever), "hosts-ever-short")
			})
		}
	}
}
