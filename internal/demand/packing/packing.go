package packing

import (
	"cmp"
	"math"
	"slices"
)

// Container is one to place.
type Container struct {
	// On is the number of the host that it is on; -1: none.
	On int
	// Demand is what it wants in each phase; all containers have equally many phases.
	Demand []Moments
	// MostCPUs is the most that it ever wants.
	MostCPUs float64
	// ExclusiveCPUs, if above 0, are CPUs of its own, rounded up to whole ones; Demand then only tells what of them it
	// leaves idle.
	ExclusiveCPUs float64
	MemoryBytes   int64
	// Secondary: it yields to all others, and runs on what they leave idle. Only its mean counts.
	Secondary bool
	// Stays: it is never moved, and its host may be empty otherwise, such as for a service of the host itself.
	Stays bool
}

// Host is one that may hold containers.
type Host struct {
	CPUs        float64
	MemoryBytes int64
}

// Options bound a plan.
type Options struct {
	// Risk is the share of the time for which a host's containers may want more CPUs than it has, between 0 and 0.5.
	Risk float64
	// Reserve is the share of each host's CPUs and memory that is left alone, from 0 to below 1.
	Reserve float64
	// Moves is how many containers may move; below 0: any.
	Moves int
}

// Plan says where containers go.
type Plan struct {
	// On is each container's host; -1: none, for those that have none now and fit nowhere.
	On []int
	// HostsNow and Hosts are how many hosts have a container that may be moved: now, and with the plan.
	HostsNow, Hosts int
	// LowerBound is how many hosts every plan needs that leaves none over its capacity.
	LowerBound int
	// Moves is how many containers have another host than now.
	Moves int
	// OverNow and Over are how many hosts want more than they have, with the risk: now, and with the plan.
	OverNow, Over int
	// Unplaced is how many containers have no host.
	Unplaced int
}

// Make makes a plan.
func Make(containers []Container, hosts []Host, o Options) Plan {
	ways, best := Ways(containers, hosts, o)
	for _, way := range ways {
		way()
	}
	return best()
}

// Ways are the ways in which a plan is made, each once. They do not depend on each other, and may run at the same time.
// When all have run best returns the best of their plans.
func Ways(containers []Container, hosts []Host, o Options) (ways []func(), best func() Plan) {
	hosts = reserved(hosts, o.Reserve)
	var drained, anew Plan
	packed := false
	ways = append(ways, func() {
		s := newState(containers, hosts, o.Risk)
		bound, hostsNow, overNow := s.lowerBound(), s.used(), s.over()
		s.drain(o.Moves)
		drained = s.plan()
		drained.LowerBound, drained.HostsNow, drained.OverNow = bound, hostsNow, overNow
	})
	if o.Moves < 0 {
		ways = append(ways, func() {
			s := newState(containers, hosts, o.Risk)
			if packed = s.packAnew(); packed {
				rename(s.on, containers, hosts) // equal hosts: the sums of plan stay as they are
				anew = s.plan()
			}
		})
	}
	return ways, func() Plan {
		a, b := &anew, &drained
		if packed && cmp.Or(cmp.Compare(a.Unplaced, b.Unplaced), cmp.Compare(a.Over, b.Over), cmp.Compare(a.Hosts, b.Hosts),
			cmp.Compare(a.Moves, b.Moves)) < 0 {
			a.LowerBound, a.HostsNow, a.OverNow = b.LowerBound, b.HostsNow, b.OverNow
			return *a
		}
		return *b
	}
}

// reserved are the hosts without the share of each that is left alone.
func reserved(hosts []Host, share float64) []Host {
	if share <= 0 {
		return hosts
	}
	hosts = slices.Clone(hosts)
	for h := range hosts {
		hosts[h].CPUs, hosts[h].MemoryBytes = (1-share)*hosts[h].CPUs, int64((1-share)*float64(hosts[h].MemoryBytes))
	}
	return hosts
}

// state is a placement under way.
type state struct {
	containers []Container
	hosts      []Host
	phases     int
	Rule
	on []int
	// held are the hosts' sums of moments, a host's phases side by side; most and memory are sums too.
	held   []Moments
	most   []float64
	memory []int64
	// tiers: there are secondaries. means are the sums of the means of all containers on each host, as held; nil without
	// secondaries.
	tiers bool
	means []float64
	// bursts are those of each container, its phases side by side; those that come for less than the risk are left out.
	bursts []burst
	// widest are the widest bursts of a single container, as held; members are the containers of each host.
	widest  []burst
	members [][]int
	// movable is how many containers of a host may be moved.
	movable []int
	// exclusive is the demand of containers with exclusive CPUs, by their number.
	exclusive map[float64][]Moments
}

func newState(containers []Container, hosts []Host, risk float64) *state {
	s := &state{containers: containers, hosts: hosts, on: make([]int, len(containers)), most: make([]float64, len(hosts)),
		memory: make([]int64, len(hosts)), movable: make([]int, len(hosts)), exclusive: map[float64][]Moments{}}
	s.Rule = NewRule(risk)
	s.phases = 1
	for i := range containers {
		s.phases = max(s.phases, len(containers[i].Demand))
	}
	s.held, s.widest = make([]Moments, s.phases*len(hosts)), make([]burst, s.phases*len(hosts))
	s.members = make([][]int, len(hosts))
	if s.tiers = slices.ContainsFunc(containers, func(c Container) bool { return c.Secondary }); s.tiers {
		s.means = make([]float64, s.phases*len(hosts))
	}
	s.bursts = s.burstsOf(containers, s.phases)
	for i := range containers {
		s.on[i] = -1
		if host := containers[i].On; host >= 0 {
			s.put(i, host)
		}
	}
	return s
}

// demand is what a container wants in each phase, and at most.
func (s *state) demand(i int) ([]Moments, float64) {
	c := &s.containers[i]
	if c.ExclusiveCPUs <= 0 {
		return c.Demand, c.MostCPUs
	}
	whole := math.Ceil(c.ExclusiveCPUs)
	d := s.exclusive[whole]
	if d == nil {
		d = make([]Moments, s.phases)
		for k := range d {
			d[k].Mean = whole
		}
		s.exclusive[whole] = d
	}
	return d, whole
}

// mean is what a container uses on average in a phase.
func (s *state) mean(i, phase int) float64 {
	if c := &s.containers[i]; phase < len(c.Demand) {
		return c.Demand[phase].Mean
	} else if len(c.Demand) == 0 && c.ExclusiveCPUs > 0 {
		return math.Ceil(c.ExclusiveCPUs)
	}
	return 0
}

// put places a container.
func (s *state) put(i, host int) {
	s.on[i] = host
	s.members[host] = append(s.members[host], i)
	s.change(i, host, 1)
	s.widen(i, host)
}

// widen takes note of a container's bursts.
func (s *state) widen(i, host int) {
	widest := s.widest[host*s.phases:]
	for k, b := range s.bursts[i*s.phases : (i+1)*s.phases] {
		if b.width > widest[k].width {
			widest[k] = b
		}
	}
}

// take removes a container from its host.
func (s *state) take(i int) {
	host := s.on[i]
	s.on[i] = -1
	s.change(i, host, -1)
	members := s.members[host]
	place := slices.Index(members, i)
	members[place] = members[len(members)-1]
	s.members[host] = members[:len(members)-1]
	clear(s.widest[host*s.phases : (host+1)*s.phases])
	for _, other := range s.members[host] {
		s.widen(other, host)
	}
}

func (s *state) change(i, host int, by float64) {
	s.memory[host] += int64(by) * s.containers[i].MemoryBytes
	if !s.containers[i].Stays {
		s.movable[host] += int(by)
	}
	if s.tiers {
		for k := range s.phases {
			s.means[host*s.phases+k] += by * s.mean(i, k)
		}
		if s.containers[i].Secondary {
			return
		}
	}
	d, most := s.demand(i)
	held := s.held[host*s.phases:]
	for k := range d {
		held[k].Mean += by * d[k].Mean
		held[k].Variance += by * d[k].Variance
		held[k].Third += by * d[k].Third
	}
	s.most[host] += by * most
}

// burstsOf are the bursts of containers that come for more than the risk.
func (r Rule) burstsOf(containers []Container, phases int) []burst {
	bursts := make([]burst, len(containers)*phases)
	for i := range containers {
		if containers[i].ExclusiveCPUs > 0 || containers[i].Secondary {
			continue
		}
		for k, m := range containers[i].Demand {
			bursts[i*phases+k] = r.burst(m)
		}
	}
	return bursts
}

// fits tells whether a host holds a container beside those that it has.
func (s *state) fits(i, host int) bool {
	h := &s.hosts[host]
	if s.memory[host]+s.containers[i].MemoryBytes > h.MemoryBytes {
		return false
	}
	if s.tiers {
		for k, used := range s.means[host*s.phases : (host+1)*s.phases] {
			if used+s.mean(i, k) > h.CPUs+rounding {
				return false
			}
		}
		if s.containers[i].Secondary {
			return true
		}
	}
	d, most := s.demand(i)
	if most += s.most[host]; most <= h.CPUs+rounding {
		return true
	}
	held := s.held[host*s.phases : (host+1)*s.phases]
	for k := range d {
		sum := held[k].plus(d[k])
		b := s.widest[host*s.phases+k]
		if own := s.bursts[i*s.phases+k]; own.width > b.width {
			b = own
		}
		if s.quantile(sum, most, b) > h.CPUs+rounding {
			return false
		}
	}
	return true
}

// wants is what a host's containers want in the phase in which they want most.
func (s *state) wants(host int) (cpus float64) {
	for k, m := range s.held[host*s.phases : (host+1)*s.phases] {
		cpus = max(cpus, s.quantile(m, s.most[host], s.widest[host*s.phases+k]))
	}
	return cpus
}

// left is how many CPUs a host has left for a container, of the secondaries or of the others: what the others do not
// want, and what all do not use.
func (s *state) left(host int, secondary bool) float64 {
	left := s.hosts[host].CPUs
	if s.tiers {
		left -= slices.Max(s.means[host*s.phases : (host+1)*s.phases])
	}
	if secondary {
		return left
	}
	return min(left, s.hosts[host].CPUs-s.wants(host))
}

// isOver tells whether a host has too little.
func (s *state) isOver(host int) bool {
	return s.memory[host] > s.hosts[host].MemoryBytes || s.left(host, false) < -rounding
}

func (s *state) over() (n int) {
	for h := range s.hosts {
		if s.isOver(h) {
			n++
		}
	}
	return n
}

func (s *state) used() (n int) {
	for _, m := range s.movable {
		if m > 0 {
			n++
		}
	}
	return n
}

func (s *state) plan() Plan {
	p := Plan{On: s.on, Hosts: s.used(), Over: s.over()}
	for i, on := range s.on {
		switch {
		case on < 0:
			p.Unplaced++
		case s.containers[i].On >= 0 && on != s.containers[i].On:
			p.Moves++
		}
	}
	return p
}

// need is about what a container takes of a host of its own size: the mean in the phase that has most, and some of the
// spread.
func (s *state) need(i int) (cpus float64) {
	if s.containers[i].Secondary {
		for k := range s.phases {
			cpus = max(cpus, s.mean(i, k))
		}
		return cpus
	}
	d, most := s.demand(i)
	for k := range d {
		cpus = max(cpus, d[k].Mean+math.Sqrt(d[k].Variance))
	}
	return min(cpus, most)
}

// lowerBound is how many hosts every placement needs.
//
// The sizes of a host's containers, by the quantile, add up to at most its CPUs: see size. Where a host fits by the sum
// of their most, that does. The sums of all containers must fit into the largest hosts together.
func (s *state) lowerBound() int {
	most, memory, moved := 0.0, int64(0), false
	spaces := make([]float64, len(s.hosts))
	memories := make([]int64, len(s.hosts))
	for h := range s.hosts {
		most = max(most, s.hosts[h].CPUs)
		memories[h] = s.hosts[h].MemoryBytes
	}
	for i := range s.containers {
		if c := &s.containers[i]; c.Stays {
			if c.On >= 0 {
				memories[c.On] -= c.MemoryBytes
			}
		} else {
			memory, moved = memory+c.MemoryBytes, true
		}
	}
	if !moved {
		return 0
	}
	slices.SortFunc(memories, func(a, b int64) int { return cmp.Compare(b, a) })
	bound := max(1, enough(memories, memory))
	for k := range s.phases {
		widest := 0.0
		for h := range s.hosts {
			spaces[h] = s.hosts[h].CPUs
		}
		for i := range s.containers {
			if d, _ := s.demand(i); k < len(d) && !s.containers[i].Secondary {
				widest = max(widest, s.spreadOf(d[k], most))
			}
		}
		sum := 0.0
		for i := range s.containers {
			d, atMost := s.demand(i)
			if k >= len(d) || s.containers[i].Secondary {
				continue
			}
			switch size, c := min(s.size(d[k], widest, most), atMost), &s.containers[i]; {
			case !c.Stays:
				sum += size
			case c.On >= 0:
				spaces[c.On] -= size
			}
		}
		slices.SortFunc(spaces, func(a, b float64) int { return cmp.Compare(b, a) })
		bound = max(bound, enough(spaces, sum*(1-rounding)))
		if s.tiers {
			bound = max(bound, s.enoughForMeans(spaces, k))
		}
	}
	return bound
}

// spreadOf is the largest sqrt(variance) that a host holds by the quantile of containers like this one, or more, so that
// its level in size is not below zero. Of several kinds no host holds more: for a variance V, V/ratio +
// skew*third/variance of a mix is an average of that of each.
func (s *state) spreadOf(m Moments, cpus float64) float64 {
	if m.Variance <= rounding || m.Mean <= 0 {
		return 0
	}
	least := math.Sqrt(max(0, -s.skew*m.Third/m.Mean))
	room, ratio := cpus-s.skew*m.Third/m.Variance, m.Variance/m.Mean
	if room <= 0 {
		return least
	}
	// mean + z*sqrt(mean*ratio) = room
	return max(least, ratio/2*(math.Sqrt(s.z*s.z+4*room/ratio)-s.z))
}

// size is what a container takes, at least, of a host of so many CPUs whose sqrt(variance) is at most widest: its share
// where all are like it. Beside others it takes no less: since third/variance >= third/widest^2, they fit where
// mean + skew*third/widest^2 + z*sqrt(variance) <= cpus, and a root of a sum is concave.
func (s *state) size(m Moments, widest, cpus float64) float64 {
	if widest <= 0 || m.Variance <= rounding {
		return m.Mean
	}
	level, spread := m.Mean+s.skew*m.Third/(widest*widest), s.z*math.Sqrt(m.Variance)
	// n such containers fill the host: n*level + sqrt(n)*spread = cpus, for the greater sqrt(n).
	share := (math.Sqrt(spread*spread+4*level*cpus) + spread) / (2 * cpus)
	return cpus * share * share
}

// enoughForMeans is how many hosts every placement needs for what all containers use in a phase. spaces is memory to
// work in.
func (s *state) enoughForMeans(spaces []float64, phase int) int {
	for h := range s.hosts {
		spaces[h] = s.hosts[h].CPUs
	}
	sum := 0.0
	for i := range s.containers {
		switch c := &s.containers[i]; {
		case !c.Stays:
			sum += s.mean(i, phase)
		case c.On >= 0:
			spaces[c.On] -= s.mean(i, phase)
		}
	}
	slices.SortFunc(spaces, func(a, b float64) int { return cmp.Compare(b, a) })
	return enough(spaces, sum*(1-rounding))
}

// enough is how many of the largest spaces hold a sum; all of them if they do not.
func enough[N int64 | float64](spaces []N, sum N) int {
	for n, space := range spaces {
		if sum <= 0 {
			return n
		}
		sum -= max(0, space)
	}
	return len(spaces)
}
