package report

import (
	"cmp"
	"slices"

	"github.com/unthrottle/unthrottle/internal/demand/packing"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// mostRepairs bounds the repairs of one host, as those of the command defrag do.
const mostRepairs = 16

// lay lays the exclusive CPUs of a cluster's containers on the groups of its hosts, round by round: what comes gets its CPUs before what leaves in
// the same round gives back its own. It returns the lists of those that move, by their places, and adds to the document how well they lie.
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
	lists, machines := map[int]string{}, map[string]*topology.Machine{}
	hosts := make([]int, 0, len(on))
	for host := range on {
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	for _, host := range hosts {
		c.layOn(host, on[host], sets, p, rounds, machines, lists, d)
	}
	return lists
}

// layOn does so on one host.
func (c *cluster) layOn(host int, of []int, sets exclusiveSets, p *packing.Plan, rounds []int, machines map[string]*topology.Machine, lists map[int]string, d *view.Plan) {
	x := d.Exclusive
	var now []int64
	stays := 0
	for _, i := range of {
		if c.containers[i].On == host {
			now = append(now, c.numbers[i])
		}
		if p.On[i] == host {
			stays++
		}
	}
	n := sets.node(c.groups[host], now, machines)
	if n == nil {
		x.Unknown += stays
		return
	}
	x.CrossingNow += crossing(n)
	leaves := func(i int) int {
		if p.On[i] == host {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(of, func(a, b int) int {
		return cmp.Or(cmp.Compare(rounds[a], rounds[b]), cmp.Compare(leaves(a), leaves(b)))
	})
	arrive := func(i int) bool {
		h, err := n.Arrive(placement.Container{Name: nameOf(c.numbers[i]), CPUs: c.containers[i].ExclusiveCPUs})
		if err == nil {
			lists[i] = n.Placed(h).Own.String()
		}
		return err == nil
	}
	var late []int // those of a round without an order wait until all have left
	for _, i := range of {
		switch {
		case rounds[i] == 0:
		case leaves(i) == 0:
			if !arrive(i) {
				late = append(late, i)
			}
		default:
			if h, ok := n.Find(nameOf(c.numbers[i])); ok {
				n.Leave(h)
			}
		}
	}
	for _, i := range late {
		if !arrive(i) {
			x.Unknown++
		}
	}
	x.Crossing += crossing(n)
	for _, m := range n.Repair(placement.Budget{Moves: mostRepairs}) {
		i := slices.IndexFunc(of, func(i int) bool { return nameOf(c.numbers[i]) == m.Container })
		x.Repairs = append(x.Repairs, view.Repair{Cluster: c.name, Node: c.nodes[host], Pod: c.names[of[i]].Pod, Container: c.names[of[i]].Container, From: m.From.String(), To: m.To.String()})
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
