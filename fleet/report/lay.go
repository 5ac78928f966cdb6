package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/unthrottle/unthrottle/internal/demand/packing"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// mostRepairs bounds the repairs of one host, as those of the command defrag do.
const mostRepairs = 16

// lay lays the exclusive CPUs of a cluster's containers on the groups of its hosts, round by round: what comes gets its
// CPUs before what leaves in the same round gives back its own. It returns the lists of those that move, by their
// places, and adds to the document how well they lie.
func (c *cluster) lay(sets exclusiveSets, p *packing.Plan, rounds []int, d *view.Plan) map[int]string {
	on := map[int][]int{} // the containers that a host has now, or gets
	for i := range c.containers {
		if c.containers[i].ExclusiveCPUs <= 0 {
			continue
		}
		if d.Exclusive == nil {
			d.Exclusive = &view.Exclusive{Repairs: []view.Repair{}}
		}
		d.Exclusive.Containers++
		from, to := c.containers[i].On, p.On[i]
		on[from] = append(on[from], i)
		if to != from {
			on[to] = append(on[to], i)
		}
	}
	l := laid{cluster: c, sets: sets, plan: p, rounds: rounds, lists: map[int]string{},
		machines: map[string]*topology.Machine{}}
	for _, host := range slices.Sorted(maps.Keys(on)) {
		l.on(host, on[host], d.Exclusive)
	}
	return l.lists
}

// laid are the exclusive CPUs of a cluster.
type laid struct {
	*cluster
	sets     exclusiveSets
	plan     *packing.Plan
	rounds   []int
	lists    map[int]string
	machines map[string]*topology.Machine
}

// on lays those of some containers on one host.
func (l *laid) on(host int, containers []int, x *view.Exclusive) {
	var now []int64
	stays := 0
	for _, i := range containers {
		if l.containers[i].On == host {
			now = append(now, l.numbers[i])
		}
		if l.plan.On[i] == host {
			stays++
		}
	}
	n := l.sets.node(l.groups[host], now, l.machines)
	if n == nil {
		x.Unknown += stays
		return
	}
	x.CrossingNow += crossing(n)
	leaves := func(i int) int {
		if l.plan.On[i] == host {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(containers, func(a, b int) int {
		return cmp.Or(cmp.Compare(l.rounds[a], l.rounds[b]), cmp.Compare(leaves(a), leaves(b)))
	})
	arrives := func(i int) bool {
		h, err := n.Arrive(placement.Container{Name: numbered(l.numbers[i]), CPUs: l.containers[i].ExclusiveCPUs})
		if err == nil {
			l.lists[i] = n.Placed(h).Own.String()
		}
		return err == nil
	}
	var late []int // those of a round without an order wait until all have left
	for _, i := range containers {
		switch {
		case l.rounds[i] == 0:
		case leaves(i) == 0:
			if !arrives(i) {
				late = append(late, i)
			}
		default:
			if h, ok := n.Find(numbered(l.numbers[i])); ok {
				n.Leave(h)
			}
		}
	}
	for _, i := range late {
		if !arrives(i) {
			x.Unknown++
		}
	}
	x.Crossing += crossing(n)
	for _, m := range n.Repair(placement.Budget{Moves: mostRepairs}) {
		place := slices.IndexFunc(containers, func(i int) bool { return numbered(l.numbers[i]) == m.Container })
		name := l.names[containers[place]]
		x.Repairs = append(x.Repairs, view.Repair{
			Cluster: l.name, Node: l.nodes[host], Pod: name.Pod, Container: name.Container, From: m.From.String(),
			To: m.To.String(),
		})
	}
	x.CrossingRepaired += crossing(n)
}

// crossing is how many containers of a host touch more groups of any level than they must.
func crossing(n *placement.Node) (count int) {
	for _, c := range n.Containers() {
		h, _ := n.Find(c.Name)
		if excess, _ := n.Excess(h); excess != [3]int{} {
			count++
		}
	}
	return count
}
