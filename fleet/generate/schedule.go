package generate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand/store"
)

// Kinds of services in a fleet with churn, by their number: every fifth is of a kind.
const (
	deployment = iota // the largest: a rolling deploy gives each pod another name
	autoscaled        // a Deployment with as many pods as its load asks for
	statefulSet
	daemonSet
	cronJob
	kindsOfService
)

// never is the end of what is still there.
const never = math.MaxInt64

const (
	secondsPerSlot = 300
	secondsPerHour = 3600
)

// life is a container of a pod of its own, from one second of the fleet to another.
type life struct {
	service, no int
	pod         string
	from, to    int64
}

// node is a host while it is there. clock is how far ahead its clock is, in seconds. torn: it ended without a notice,
// and its rows of the five minutes under way are lost.
type node struct {
	name     string
	from, to int64
	clock    int64
	torn     bool
	lives    []*life
	running  int
}

// schedule is what runs where, and when: from 0 to end.
type schedule struct {
	nodes []*node
	end   int64
}

// steady has each container on one host all the time.
func steady(services []service, o Options) *schedule {
	s := &schedule{end: int64(o.Hours) * secondsPerHour}
	for range o.Hosts {
		s.add(0)
	}
	no := 0
	for i := range services {
		for range services[i].replicas {
			n := s.nodes[no%o.Hosts]
			n.lives = append(n.lives, &life{service: i, no: no, pod: podName(services[i].workload, firstHash, no), to: never})
			no++
		}
	}
	return s
}

func (s *schedule) add(from int64) *node {
	n := &node{name: fmt.Sprintf("n%05d", len(s.nodes)), from: from, to: never}
	s.nodes = append(s.nodes, n)
	return n
}

// churn is a fleet under way.
type churn struct {
	schedule
	chance   *rand.Rand
	services []service
	state    []rollout
	there    []*node // the nodes that are there, the oldest first
	pods     int
	o        Options
}

// rollout is a service under way.
type rollout struct {
	pods     []*pod
	template int
	next     int // the slot of the next deploy
}

// pod is one that runs. ordinal is that of a StatefulSet.
type pod struct {
	*life
	on       *node
	template int
	ordinal  int
}

// changing draws a fleet in which nodes come and go, and pods with them. A third of the nodes that are always wanted
// are spot nodes, which live for a day on average and end without a notice. Others follow the load of the day, and are
// drained. Clocks are up to three minutes apart, and that of one node is an hour ahead.
func changing(services []service, o Options) *schedule {
	c := &churn{schedule: schedule{end: int64(o.Hours) * secondsPerHour}, services: services, o: o,
		chance: rand.New(rand.NewPCG(o.Seed, 1<<40)), state: make([]rollout, len(services))}
	for i := range c.state {
		c.state[i].next = c.chance.IntN(30 * slotsPerHour)
	}
	spotEnds := map[*node]int64{}
	for slot := range o.Hours * slotsPerHour {
		at := int64(slot) * secondsPerSlot
		c.scale(at, slot, spotEnds)
		for i := range services {
			c.step(i, slot, at)
		}
	}
	return &c.schedule
}

// within is a second of the slot that begins at a moment; all that is there at 0 was there before.
func (c *churn) within(at int64, seconds int) int64 {
	if at == 0 {
		return 0
	}
	return at + 1 + int64(c.chance.IntN(seconds))
}

// scale has nodes come and go.
func (c *churn) scale(at int64, slot int, spotEnds map[*node]int64) {
	load := 0.5 - 0.5*math.Cos(2*math.Pi*float64(slot)/float64(24*slotsPerHour))
	least := max(1, int(math.Ceil(0.7*float64(c.o.Hosts))))
	want := least + int(load*float64(c.o.Hosts-least))
	for _, n := range slices.Clone(c.there) {
		if end, spot := spotEnds[n]; spot && end < at+secondsPerSlot && len(c.there) > 1 {
			n.torn = true
			c.leave(n, max(end, at), 0)
			c.come(max(end, at)+90, spotEnds, true)
		}
	}
	for len(c.there) > want {
		i := len(c.there) - 1
		for _, spot := spotEnds[c.there[i]]; spot && i > 0; _, spot = spotEnds[c.there[i]] {
			i--
		}
		c.leave(c.there[i], c.within(at, 120), 120)
	}
	for len(c.there) < want {
		c.come(c.within(at, secondsPerSlot/2), spotEnds, len(c.there) < least && len(c.there)%3 == 1)
	}
}

// come adds a node, with the pods of DaemonSets.
func (c *churn) come(at int64, spotEnds map[*node]int64, spot bool) {
	n := c.add(at)
	n.clock = int64(c.chance.NormFloat64() * 2)
	switch no := len(c.nodes); {
	case no == 4:
		n.clock = secondsPerHour
	case no%10 == 7:
		n.clock = int64(c.chance.IntN(360)) - 180
	}
	if spot {
		spotEnds[n] = at + 3600 + int64(c.chance.ExpFloat64()*23*3600)
	}
	c.there = append(c.there, n)
	for i := range c.services {
		if kindOf(i) == daemonSet {
			c.start(i, at, n, 0)
		}
	}
}

// leave ends a node, so many seconds after its pods.
func (c *churn) leave(n *node, at, later int64) {
	n.to = at + later
	c.there = slices.DeleteFunc(c.there, func(other *node) bool { return other == n })
	for i := range c.state {
		for _, p := range slices.Clone(c.state[i].pods) {
			if p.on != n {
				continue
			}
			if kindOf(i) == daemonSet {
				c.stop(i, p, n.to)
				continue
			}
			c.stop(i, p, at)
			if kindOf(i) != cronJob {
				c.start(i, at+5+int64(c.chance.IntN(30)), c.place(), p.ordinal)
			}
		}
	}
}

// place is a node for a pod: of three that are drawn the one with fewest.
func (c *churn) place() *node {
	best := c.there[c.chance.IntN(len(c.there))]
	for range 2 {
		if n := c.there[c.chance.IntN(len(c.there))]; n.running < best.running {
			best = n
		}
	}
	return best
}

// start starts a pod; on its node it runs no sooner than that came.
func (c *churn) start(i int, at int64, on *node, ordinal int) *pod {
	s, r := &c.services[i], &c.state[i]
	p := &pod{life: &life{service: i, no: c.pods, from: max(at, on.from), to: never}, on: on, template: r.template,
		ordinal: ordinal}
	switch kindOf(i) {
	case statefulSet:
		p.pod = fmt.Sprintf("%s-%d", s.workload, ordinal)
	case daemonSet:
		p.pod = s.workload + "-" + suffix(c.pods)
	case cronJob:
		p.pod = fmt.Sprintf("%s-%d-%s", s.workload, (c.o.Start.Unix()+at)/60, suffix(c.pods))
	default:
		p.pod = podName(s.workload, hash(i, r.template), c.pods)
	}
	c.pods++
	on.running++
	on.lives, r.pods = append(on.lives, p.life), append(r.pods, p)
	return p
}

func (c *churn) stop(i int, p *pod, at int64) {
	p.to = max(at, p.from+1)
	p.on.running--
	c.state[i].pods = slices.DeleteFunc(c.state[i].pods, func(other *pod) bool { return other == p })
}

// step is what becomes of a service in a slot.
func (c *churn) step(i, slot int, at int64) {
	r, kind := &c.state[i], kindOf(i)
	want := c.services[i].replicas
	switch kind {
	case cronJob:
		c.jobs(i, slot, at, want)
		return
	case daemonSet:
		want = len(r.pods)
	case autoscaled:
		want = max(1, want*(levelAt(i, slot)+1)/levels)
	}
	for len(r.pods) > want {
		c.stop(i, r.pods[len(r.pods)-1], c.within(at, secondsPerSlot-60))
	}
	for len(r.pods) < want {
		c.start(i, c.within(at, secondsPerSlot-60), c.place(), len(r.pods))
	}
	if slot == r.next { // a deploy, every 6 to 30 hours
		r.template, r.next = r.template+1, slot+6*slotsPerHour+c.chance.IntN(24*slotsPerHour)
	}
	left := max(1, want/4)
	for _, p := range slices.Clone(r.pods) {
		if p.template == r.template || left == 0 {
			continue
		}
		left--
		from := c.within(at, secondsPerSlot-60)
		switch kind {
		case statefulSet:
			c.stop(i, p, from)
			c.start(i, from+10, c.place(), p.ordinal)
		case daemonSet:
			c.stop(i, p, from)
			c.start(i, from+10, p.on, 0)
		default: // the new one comes first
			c.start(i, from, c.place(), 0)
			c.stop(i, p, from+int64(5+c.chance.IntN(40)))
		}
	}
}

// jobs starts the pods of a CronJob once an hour. They run for 3 to 40 minutes.
func (c *churn) jobs(i, slot int, at int64, want int) {
	for _, p := range slices.Clone(c.state[i].pods) {
		if p.to <= at {
			p.on.running--
			c.state[i].pods = slices.DeleteFunc(c.state[i].pods, func(other *pod) bool { return other == p })
		}
	}
	if slot%slotsPerHour != i%slotsPerHour {
		return
	}
	lasts := int64(180 + c.chance.IntN(37*60))
	for range want {
		p := c.start(i, at+1, c.place(), 0)
		p.to = p.from + lasts
	}
}

func kindOf(service int) int { return service % kindsOfService }

// count counts each service's containers at the end, and the slots in which it ran, by their level.
func (s *schedule) count(services []service) {
	slots := int(s.end / secondsPerSlot)
	ran := make([]bool, len(services)*slots)
	for _, n := range s.nodes {
		for _, l := range n.lives {
			to := min(l.to, n.to)
			if to > s.end {
				services[l.service].now++
			}
			for slot := int(l.from / secondsPerSlot); slot < slots && int64(slot)*secondsPerSlot < to; slot++ {
				ran[l.service*slots+slot] = true
			}
		}
	}
	for i, runs := range ran {
		if runs {
			services[i/slots].seen[levelAt(i/slots, i%slots)]++
		}
	}
}

// at is what is there at a second.
func (s *schedule) at(second int64, services []service, start time.Time) Running {
	r := Running{At: start.Add(time.Duration(second) * time.Second)}
	for _, n := range s.nodes {
		if second < n.from || second >= n.to {
			continue
		}
		r.Hosts++
		for _, l := range n.lives {
			if l.from <= second && second < l.to {
				r.Containers, r.CoresNow = r.Containers+1, r.CoresNow+services[l.service].truth.has()
			}
		}
	}
	return r
}

// row is which part of a slot by a node's clock a container has a row of: from a second on by that clock, for so many.
// A slot is written when it has ended, or when the node ends with a notice.
func (s *schedule) row(n *node, l *life, slot int) (from, seconds int64) {
	begins := int64(slot) * secondsPerSlot
	ends := begins + secondsPerSlot
	from, to := max(begins, l.from+n.clock), ends
	if end := min(l.to, n.to); end != never {
		to = min(to, end+n.clock)
	}
	written := ends <= min(n.to, s.end)+n.clock || n.to <= s.end && !n.torn
	if from >= to || !written {
		return 0, 0
	}
	return from, to - from
}

// file is one of an hour, by the nodes' clocks: the no'th where they are joined.
type file struct {
	hour, no int
	nodes    []*node
}

// files are those with the rows of each hour: of each node one, or of so many nodes together that it has as many rows
// as store.Join makes.
func (s *schedule) files(joined bool) (files []file) {
	hours := int(s.end / secondsPerHour)
	for hour := -1; hour <= hours; hour++ {
		begins := int64(hour) * secondsPerHour
		next, rows := file{hour: hour}, 0
		for _, n := range s.nodes {
			if n.from+n.clock >= begins+secondsPerHour || min(n.to, s.end)+n.clock <= begins {
				continue
			}
			next.nodes = append(next.nodes, n)
			for _, l := range n.lives {
				if l.from+n.clock < begins+secondsPerHour && (l.to == never || l.to+n.clock > begins) {
					rows += slotsPerHour
				}
			}
			if !joined || rows >= store.RowsOfFile {
				files = append(files, next)
				next, rows = file{hour: hour, no: next.no + 1}, 0
			}
		}
		if len(next.nodes) > 0 {
			files = append(files, next)
		}
	}
	return files
}
