package packing

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// bursty are the moments of a container that uses base CPUs, and most of them for a share of the time.
func bursty(base, most, share float64) []Moments {
	d := most - base
	return []Moments{{base + share*d, d * d * share * (1 - share), d * d * d * share * (1 - share) * (1 - 2*share)}}
}

// The worked example of the package.
func TestQuantileOfTwo(t *testing.T) {
	c := Container{On: 0, Demand: bursty(1, 5, 0.01), MostCPUs: 5}
	for cpus, want := range map[float64]int{9.5: 0, 9.3: 1} {
		if p := Make([]Container{c, c}, []Host{{CPUs: cpus}}, Options{Risk: 0.001}); p.OverNow != want {
			t.Errorf("%v CPUs: %+v", cpus, p)
		}
	}
}

// drawn is a fleet as chance has it.
func drawn(t *rapid.T) ([]Container, []Host, Options) {
	phases := rapid.IntRange(1, 3).Draw(t, "phases")
	hosts := make([]Host, rapid.IntRange(1, 12).Draw(t, "hosts"))
	for h := range hosts {
		hosts[h] = Host{CPUs: float64(rapid.IntRange(1, 64).Draw(t, "cpus")), MemoryBytes: int64(rapid.IntRange(0, 64).Draw(t, "memory"))}
	}
	containers := make([]Container, rapid.IntRange(0, 40).Draw(t, "containers"))
	tiers := rapid.Bool().Draw(t, "tiers")
	for i := range containers {
		c := &containers[i]
		c.On = rapid.IntRange(-1, len(hosts)-1).Draw(t, "on")
		c.MemoryBytes = int64(rapid.IntRange(0, 16).Draw(t, "bytes"))
		c.Stays = rapid.IntRange(0, 9).Draw(t, "stays") == 0
		if rapid.IntRange(0, 9).Draw(t, "exclusive") == 0 {
			c.ExclusiveCPUs = rapid.Float64Range(0.1, 8).Draw(t, "pinned")
		}
		c.Secondary = tiers && c.ExclusiveCPUs == 0 && rapid.IntRange(0, 2).Draw(t, "secondary") == 0
		for range phases {
			base := rapid.Float64Range(0, 4).Draw(t, "base")
			most := base + rapid.Float64Range(0, 8).Draw(t, "burst")
			c.MostCPUs = max(c.MostCPUs, most)
			c.Demand = append(c.Demand, bursty(base, most, rapid.Float64Range(0, 1).Draw(t, "share"))...)
		}
	}
	return containers, hosts, Options{Risk: rapid.SampledFrom([]float64{0.001, 0.05, 0.4}).Draw(t, "risk"),
		Moves:   rapid.IntRange(-1, 12).Draw(t, "moves"),
		Reserve: rapid.SampledFrom([]float64{0, 0, 0.2}).Draw(t, "reserve")}
}

// isOver tells it from the definition, by sums of its own.
func isOver(on []int, containers []Container, host int, h Host, risk float64) bool {
	z := math.Sqrt2 * math.Erfinv(1-2*risk)
	memory := int64(0)
	for k := range 3 {
		var sum Moments
		most, any := 0.0, false
		memory = 0
		used, secondaries := 0.0, false
		for i, c := range containers {
			if on[i] != host {
				continue
			}
			memory += c.MemoryBytes
			if k < len(c.Demand) {
				used += c.Demand[k].Mean // of exclusive CPUs too: what they leave idle is there for secondaries
			}
			if secondaries = secondaries || c.Secondary; c.Secondary {
				continue
			}
			if c.ExclusiveCPUs > 0 {
				sum.Mean, most, any = sum.Mean+math.Ceil(c.ExclusiveCPUs), most+math.Ceil(c.ExclusiveCPUs), true
				continue
			}
			most += c.MostCPUs
			if k < len(c.Demand) {
				sum, any = Moments{sum.Mean + c.Demand[k].Mean, sum.Variance + c.Demand[k].Variance, sum.Third + c.Demand[k].Third}, true
			}
		}
		if secondaries && used > h.CPUs+1e-5 {
			return true
		}
		wants := sum.Mean
		if sum.Variance > 1e-6 {
			wants += z*math.Sqrt(sum.Variance) + max(0, (z*z-1)/6)*max(0, sum.Third)/sum.Variance
		}
		if any && min(wants, most) > h.CPUs+1e-5 {
			return true
		}
	}
	return memory > h.MemoryBytes
}

func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		containers, hosts, o := drawn(t)
		was := make([]int, len(containers))
		for i := range containers {
			was[i] = containers[i].On
		}
		p := Make(containers, hosts, o)
		if again := Make(containers, hosts, o); !slices.Equal(p.On, again.On) {
			t.Fatal("another plan of the same fleet")
		}
		if len(p.On) != len(containers) {
			t.Fatalf("%d places of %d containers", len(p.On), len(containers))
		}
		moves, unplaced := 0, 0
		used, usedNow := map[int]bool{}, map[int]bool{}
		for i, on := range p.On {
			c := &containers[i]
			switch {
			case on < -1 || on >= len(hosts):
				t.Fatalf("container %d on host %d", i, on)
			case c.On >= 0 && on < 0, c.Stays && on != c.On:
				t.Fatalf("container %d was on %d and is on %d", i, c.On, on)
			case on < 0:
				unplaced++
			case on != c.On:
				moves++
			}
			if c.On >= 0 && !c.Stays {
				usedNow[c.On] = true
			}
			if on >= 0 && !c.Stays {
				used[on] = true
			}
		}
		if p.Unplaced != unplaced || p.Hosts != len(used) || p.HostsNow != len(usedNow) {
			t.Fatalf("%+v, by its places %d unplaced on %d hosts, %d now", p, unplaced, len(used), len(usedNow))
		}
		over := 0
		for h := range hosts {
			left := Host{(1 - o.Reserve) * hosts[h].CPUs, int64((1 - o.Reserve) * float64(hosts[h].MemoryBytes))}
			if !isOver(p.On, containers, h, left, o.Risk) {
				continue
			}
			over++
			if !isOver(was, containers, h, left, o.Risk) {
				t.Fatalf("host %d had enough, and has too little", h)
			}
		}
		if over > p.Over {
			t.Fatalf("%d hosts have too little, of which %d are told", over, p.Over)
		}
		if p.Over == 0 && p.Unplaced == 0 && p.LowerBound > p.Hosts {
			t.Fatalf("%d hosts are below the lower bound of %d", p.Hosts, p.LowerBound)
		}
		if p.Over > p.OverNow {
			t.Fatalf("%d hosts had too little, %d have", p.OverNow, p.Over)
		}
		placed := 0 // they have no host to move from, and are no moves of the budget
		for i := range containers {
			if containers[i].On < 0 && p.On[i] >= 0 {
				placed++
			}
		}
		if o.Moves >= 0 && moves-placed > o.Moves {
			t.Fatalf("%d moves, of %d", moves-placed, o.Moves)
		}
		if p.Moves != moves-placed {
			t.Fatalf("%d moves are told, of %d", p.Moves, moves-placed)
		}
	})
}

// A host that has too little loses as few containers as that takes, and a budget of no moves changes nothing.
func TestRelief(t *testing.T) {
	one := func(on int, cpus float64) Container {
		return Container{On: on, Demand: []Moments{{Mean: cpus}}, MostCPUs: cpus}
	}
	containers := []Container{one(0, 3), one(0, 2), one(0, 2), one(0, 2), one(1, 1)}
	hosts := []Host{{CPUs: 8}, {CPUs: 8}}
	if p := Make(containers, hosts, Options{Risk: 0.001, Moves: 5}); p.OverNow != 1 || p.Over != 0 || p.Moves != 1 ||
		p.Hosts != 2 || p.LowerBound != 2 {
		t.Errorf("%+v", p)
	}
	if p := Make(containers, hosts, Options{Risk: 0.001, Moves: 0}); p.Over != 1 || p.Moves != 0 {
		t.Errorf("%+v", p)
	}
}

// Hosts with fewest containers are emptied first.
func TestFewestMovesFirst(t *testing.T) {
	var containers []Container
	for host, n := range []int{4, 1, 2} {
		for range n {
			containers = append(containers, Container{On: host, Demand: []Moments{{Mean: 1}}, MostCPUs: 1})
		}
	}
	hosts := []Host{{CPUs: 8}, {CPUs: 8}, {CPUs: 8}}
	for _, c := range []struct{ may, hosts, moves int }{{0, 3, 0}, {1, 2, 1}, {2, 2, 1}, {3, 1, 3}, {-1, 1, 3}} {
		if p := Make(containers, hosts, Options{Risk: 0.001, Moves: c.may}); p.Hosts != c.hosts || p.Moves != c.moves {
			t.Errorf("%d moves: %+v", c.may, p)
		}
	}
}

// A placement anew keeps the hosts' names where it can: of equal hosts, those that have most of the containers.
func TestRename(t *testing.T) {
	containers := []Container{{On: 2}, {On: 2}, {On: 0}, {On: 1}, {On: 3, Stays: true}, {On: -1}}
	hosts := []Host{{CPUs: 8}, {CPUs: 8}, {CPUs: 8}, {CPUs: 8}}
	on := []int{0, 0, 0, 1, 3, 2}
	rename(on, containers, hosts)
	if want := []int{2, 2, 2, 1, 3, 0}; !slices.Equal(on, want) {
		t.Errorf("%v, want %v", on, want)
	}
	hosts[2].CPUs = 9
	on = []int{0, 0, 0, 1, 3, 2}
	rename(on, containers, hosts)
	if want := []int{0, 0, 0, 1, 3, 2}; !slices.Equal(on, want) {
		t.Errorf("%v, want %v: a host of 9 CPUs is another", on, want)
	}
}

// The moments of two levels tell them again, and one wide container bursts for more than the risk: the host must hold
// it beside the others.
func TestWidestBurst(t *testing.T) {
	for _, c := range []struct{ most, share float64 }{{40, 0.003}, {5, 0.2}, {2, 0.49}} {
		b := burstOf(bursty(1, 1+c.most, c.share)[0])
		if math.Abs(b.width-c.most) > 1e-6 || math.Abs(b.share-c.share) > 1e-6 {
			t.Errorf("%+v: %+v", c, b)
		}
	}
	for _, m := range []Moments{{Mean: 3}, bursty(1, 5, 0.9)[0]} {
		if b := burstOf(m); b != (burst{}) {
			t.Errorf("%+v: %+v", m, b)
		}
	}
	containers := []Container{{On: 0, Demand: bursty(1, 41, 0.003), MostCPUs: 41}}
	for range 60 { // 30 CPUs with a deviation of 3.87, of which 0.43 beside the burst: 72.7 in all; pooled it is 58.6
		containers = append(containers, Container{On: 0, Demand: bursty(0, 1, 0.5), MostCPUs: 1})
	}
	for cpus, want := range map[float64]int{72.5: 1, 73: 0} {
		if p := Make(containers, []Host{{CPUs: cpus}}, Options{Risk: 0.001}); p.OverNow != want {
			t.Errorf("%v CPUs: %+v", cpus, p)
		}
	}
	p := Make(containers[1:], []Host{{CPUs: 45}, {CPUs: 45}}, Options{Risk: 0.001})
	if q := Make(containers, []Host{{CPUs: 45}, {CPUs: 45}}, Options{Risk: 0.001, Moves: 1}); p.OverNow != 0 ||
		q.OverNow != 1 || q.Over != 0 || q.Moves != 1 {
		t.Errorf("without the burst %+v, with it %+v", p, q)
	}
}

// Secondaries fill what the others leave idle, exclusive CPUs too, and do not count for the risk. What they need on
// average has room.
func TestSecondaries(t *testing.T) {
	web := Container{On: 0, Demand: bursty(1, 8, 0.01), MostCPUs: 8, MemoryBytes: 1}
	pinned := Container{On: 1, Demand: bursty(1, 4, 0.01), MostCPUs: 4, ExclusiveCPUs: 4, MemoryBytes: 1}
	batch := func(on int, cpus float64) Container {
		return Container{On: on, Demand: []Moments{{cpus, 4, 8}}, MostCPUs: 16, MemoryBytes: 1, Secondary: true}
	}
	hosts := slices.Repeat([]Host{{CPUs: 12, MemoryBytes: 8}}, 4)
	all := []Container{web, pinned, batch(2, 6), batch(3, 3.5)}
	p := Make(all, hosts, Options{Risk: 0.001, Moves: -1})
	if p.Hosts != 1 || p.LowerBound != 1 || p.Over != 0 { // 1.07 + 1.03 + 9.5 CPUs on average, 8 + 4 at most
		t.Errorf("%+v", p)
	}
	all[3] = batch(3, 5)
	if p = Make(all, hosts, Options{Risk: 0.001, Moves: -1}); p.Hosts != 2 || p.LowerBound != 2 || p.Over != 0 {
		t.Errorf("no room for the means: %+v", p)
	}
	for i := range all {
		all[i].Secondary = false
	}
	if p = Make(all, hosts, Options{Risk: 0.001, Moves: -1}); p.Hosts < 3 {
		t.Errorf("of one tier: %+v", p)
	}
	// A host whose means are too much for it is relieved.
	if p = Make([]Container{web, batch(0, 8), batch(0, 4)}, hosts, Options{Risk: 0.001, Moves: 1}); p.OverNow != 1 ||
		p.Over != 0 || p.Moves != 1 {
		t.Errorf("%+v", p)
	}
}
