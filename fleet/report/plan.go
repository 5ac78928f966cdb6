package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand/packing"
	"github.com/unthrottle/unthrottle/internal/sim/parallel"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// phases are how many parts of the day plan_demand.sql tells apart.
const phases = 8

// Reasons for which a container stays where it is. Users read them.
const (
	ofHost       = "a unit of the host itself"
	onEachHost   = "its service has one container on each host of the cluster"
	noDemand     = "neither its demand nor a limit or request is known"
	noMemory     = "its memory is not known"
	leastOnHosts = 3 // one container on each of two hosts says little
)

// NoHosts is the error for rows that do not tell of any host what it has.
type NoHosts struct{ Hosts int }

func (e *NoHosts) Error() string {
	return fmt.Sprintf("rows of %d hosts do not tell their CPUs and memory: they are of older programs; 'unthrottle export' and agents of this version keep both", e.Hosts)
}

// cluster is the hosts among which containers may move.
type cluster struct {
	name       string
	nodes      []string
	number     map[string]int
	hosts      []packing.Host
	containers []packing.Container
	// names are the containers, side by side, numbers those of the rows.
	names   []view.Move
	numbers []int64
	// groups are how the hosts' CPUs are grouped, side by side; "": not known.
	groups []string
}

// PlanOptions are what a plan may do.
type PlanOptions struct {
	packing.Options
	// Secondary says which services yield to all others, beside containers with that remedy in force; nil: none.
	Secondary func(service string) bool
	// Clock is what the plan's time is measured by.
	Clock func() time.Time
}

// MakePlan makes a plan. Containers move within their cluster. A budget of moves goes to the clusters in the order of their names.
func MakePlan(ctx context.Context, e engine.Engine, o Options, may PlanOptions) (view.Plan, error) {
	d := view.Plan{Risk: may.Risk, Reserve: may.Reserve, Stay: []view.Stay{}, Emptied: []view.Host{}, MoveList: []view.Move{}}
	if may.Moves >= 0 {
		d.MovesAtMost = &may.Moves
	}
	if err := prepare(ctx, e, &o, "totals", "problems", "hosts", "plan_hosts", "plan_demand", "plan_containers", "exclusive"); err != nil {
		return d, err
	}
	var read view.Document
	if err := input(ctx, e, o, &read); err != nil {
		return d, err
	}
	d.From, d.Until, d.Input = read.From, read.Until, read.Input
	clusters, unknown, err := clustersOf(ctx, e)
	if err != nil {
		return d, err
	}
	if d.HostsUnknown = unknown; len(clusters) == 0 {
		return d, &NoHosts{unknown}
	}
	if err := containersOf(ctx, e, clusters, may.Secondary, &d); err != nil {
		return d, err
	}
	sets, err := exclusiveOf(ctx, e)
	if err != nil {
		return d, err
	}
	began, left := may.Clock(), may.Moves
	for _, c := range clusters {
		of := packing.Options{Risk: may.Risk, Reserve: may.Reserve, Moves: left}
		ways, best := packing.Ways(c.containers, c.hosts, of)
		if err := parallel.OnAllCores(ctx)(len(ways), func(i int) error { ways[i](); return nil }); err != nil {
			return d, err
		}
		p := best()
		if left >= 0 {
			left -= p.Moves
		}
		rounds, tight := packing.Rounds(c.containers, c.hosts, p.On, of)
		d.MovesTight += tight
		c.add(&p, rounds, c.lay(sets, &p, rounds, &d), &d)
	}
	d.Seconds = may.Clock().Sub(began).Seconds()
	return d, nil
}

// clustersOf are the hosts whose CPUs and memory are known, by cluster; unknown is how many others there are.
func clustersOf(ctx context.Context, e engine.Engine) (all []*cluster, unknown int, err error) {
	err = e.Ask(ctx, "plan_hosts", func(scan func(...any) error) error {
		var name, node string
		var cpus *int
		var memory *int64
		var groups string
		if err := scan(&name, &node, &cpus, &memory, &groups); err != nil {
			return err
		}
		if cpus == nil || memory == nil {
			unknown++
			return nil
		}
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, &cluster{name: name, number: map[string]int{}})
		}
		c := all[len(all)-1]
		c.number[node] = len(c.hosts)
		c.nodes, c.hosts, c.groups = append(c.nodes, node), append(c.hosts, packing.Host{CPUs: float64(*cpus), MemoryBytes: *memory}), append(c.groups, groups)
		return nil
	})
	return all, unknown, err
}

// containersOf adds the containers to their clusters, with what they want.
func containersOf(ctx context.Context, e engine.Engine, clusters []*cluster, secondary func(service string) bool, d *view.Plan) error {
	demands := map[int64]*demandOfDay{}
	if err := e.Ask(ctx, "plan_demand", func(scan func(...any) error) error {
		var no int64
		var phase int
		var s sums
		if err := scan(&no, &phase, &s.us, &s.cpus, &s.squares, &s.cubes, &s.most); err != nil {
			return err
		}
		of := demands[no]
		if of == nil {
			of = &demandOfDay{}
			demands[no] = of
		}
		of[phase] = s
		return nil
	}); err != nil {
		return err
	}
	at, stay := 0, map[string]int{}
	err := e.Ask(ctx, "plan_containers", func(scan func(...any) error) error {
		var no int64
		var name, node, of, runtime string
		var m view.Move
		var allowed *int
		var cores, used *float64
		var memory *int64
		if err := scan(&no, &name, &node, &m.Namespace, &m.Pod, &m.Container, &m.Service, &of, &allowed, &cores, &runtime, &memory, &used); err != nil {
			return err
		}
		for at < len(clusters)-1 && clusters[at].name < name {
			at++
		}
		c := clusters[at]
		host, known := c.number[node]
		if c.name != name || !known {
			d.ContainersUnknown++
			return nil
		}
		p := packing.Container{On: host}
		why := ""
		switch demand := demands[no]; {
		case of == string(remedy.Pin) && allowed != nil:
			p.ExclusiveCPUs = float64(*allowed)
			if demand != nil { // what it leaves idle of them is there for secondaries
				p.Demand, p.MostCPUs = demand.moments()
			}
		case demand != nil:
			p.Demand, p.MostCPUs = demand.moments()
		case cores != nil:
			p.Demand, p.MostCPUs = constant(*cores), *cores
		default:
			why = noDemand
			if used != nil {
				p.Demand, p.MostCPUs = constant(*used), *used
			}
		}
		if memory != nil {
			p.MemoryBytes = *memory
		} else {
			why = cmp.Or(why, noMemory)
		}
		if runtime == container.Systemd {
			why = ofHost
		}
		if why != "" {
			stay[why]++
			p.Stays = true
		}
		if p.Secondary = p.ExclusiveCPUs == 0 && (of == string(remedy.Secondary) || secondary != nil && secondary(m.Service)); p.Secondary {
			d.Secondaries++
		}
		m.Cluster, m.From = name, node
		c.containers, c.names, c.numbers = append(c.containers, p), append(c.names, m), append(c.numbers, no)
		d.Containers++
		return nil
	})
	for _, c := range clusters {
		stay[onEachHost] += c.keepThoseOnEachHost()
	}
	for _, why := range []string{ofHost, onEachHost, noDemand, noMemory} {
		if n := stay[why]; n > 0 {
			d.Stay = append(d.Stay, view.Stay{Reason: why, Containers: n})
		}
	}
	return err
}

// keepThoseOnEachHost has the containers stay of services that have one on each host, as a DaemonSet has, and returns how many there are.
func (c *cluster) keepThoseOnEachHost() (kept int) {
	if len(c.hosts) < leastOnHosts {
		return 0
	}
	type service struct{ namespace, name string }
	on := map[service]map[int]int{}
	for i := range c.containers {
		of := service{c.names[i].Namespace, c.names[i].Service}
		if on[of] == nil {
			on[of] = map[int]int{}
		}
		on[of][c.containers[i].On]++
	}
	for i := range c.containers {
		of := on[service{c.names[i].Namespace, c.names[i].Service}]
		several := len(of) < len(c.hosts)
		for _, n := range of {
			several = several || n > 1
		}
		if !several && !c.containers[i].Stays {
			c.containers[i].Stays = true
			kept++
		}
	}
	return kept
}

// add adds a cluster's plan to the document. cpus are the exclusive CPUs of the containers that move, by their places.
func (c *cluster) add(p *packing.Plan, rounds []int, cpus map[int]string, d *view.Plan) {
	d.HostsNow, d.Hosts, d.LowerBound, d.Moves = d.HostsNow+p.HostsNow, d.Hosts+p.Hosts, d.LowerBound+p.LowerBound, d.Moves+p.Moves
	d.OverNow, d.Over = d.OverNow+p.OverNow, d.Over+p.Over
	now, then := make([]bool, len(c.hosts)), make([]bool, len(c.hosts))
	for i, to := range p.On {
		from := c.containers[i].On
		if !c.containers[i].Stays {
			now[from], then[to] = true, true
		}
		if to != from {
			m := c.names[i]
			m.To, m.Round = c.nodes[to], rounds[i]
			if list, ok := cpus[i]; ok {
				m.CPUs = &list
			}
			d.Rounds = max(d.Rounds, m.Round)
			d.MoveList = append(d.MoveList, m)
		}
	}
	for h, node := range c.nodes {
		if now[h] && !then[h] {
			d.Emptied = append(d.Emptied, view.Host{Cluster: c.name, Node: node})
		}
	}
}

// sums are those of plan_demand.sql.
type sums struct {
	us, cpus, squares, cubes float64
	most                     int
}

type demandOfDay [phases]sums

// moments are what a container wants in each phase. Of one without rows it is taken to want as much as in that of which its need is greatest.
func (d *demandOfDay) moments() (of []packing.Moments, most float64) {
	of = make([]packing.Moments, phases)
	busiest := 0
	size := func(m packing.Moments) float64 { return m.Mean + math.Sqrt(m.Variance) }
	for k, s := range d {
		if s.us == 0 {
			continue
		}
		mean, square, cube := s.cpus/s.us, s.squares/s.us, s.cubes/s.us
		of[k] = packing.Moments{Mean: mean, Variance: max(0, square-mean*mean), Third: cube - 3*mean*square + 2*mean*mean*mean}
		most = max(most, float64(s.most))
		if d[busiest].us == 0 || size(of[k]) > size(of[busiest]) {
			busiest = k
		}
	}
	for k, s := range d {
		if s.us == 0 {
			of[k] = of[busiest]
		}
	}
	return of, most
}

// constant is a demand that is always the same.
func constant(cpus float64) []packing.Moments {
	return slices.Repeat([]packing.Moments{{Mean: cpus}}, phases)
}
