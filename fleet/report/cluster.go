package report

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/packing"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
	"github.com/unthrottle/unthrottle/internal/sim/parallel"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

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
	return fmt.Sprintf("rows of %d hosts do not tell their CPUs and memory: they are of older programs; 'unthrottle "+
		"export' and agents of this version keep both", e.Hosts)
}

// cluster is the hosts among which containers may move.
type cluster struct {
	name       string
	nodes      []string
	places     map[string]int // of the nodes
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

// MakePlan makes a plan. Containers move within their cluster. A budget of moves goes to the clusters in the order of
// their names.
func MakePlan(ctx context.Context, e engine.Engine, o Options, may PlanOptions) (view.Plan, error) {
	if err := prepare(ctx, e, &o, ofPlan...); err != nil {
		return view.Plan{}, err
	}
	var read view.Document
	if err := input(ctx, e, o, &read); err != nil {
		return view.Plan{}, err
	}
	return planOf(ctx, e, &read, may)
}

// planOf makes a plan of what was prepared. read says what that was: see input.
func planOf(ctx context.Context, e engine.Engine, read *view.Document, may PlanOptions) (view.Plan, error) {
	d := view.Plan{Risk: may.Risk, Reserve: may.Reserve, Stay: []view.Stay{}, Emptied: []view.Host{},
		MoveList: []view.Move{}}
	if may.Moves >= 0 {
		d.MovesAtMost = &may.Moves
	}
	d.From, d.Until, d.Input = read.From, read.Until, read.Input
	clusters, unknown, err := readClusters(ctx, e)
	if err != nil {
		return d, err
	}
	if d.HostsUnknown = unknown; len(clusters) == 0 {
		return d, &NoHosts{unknown}
	}
	if err := readContainers(ctx, e, clusters, may.Secondary, &d); err != nil {
		return d, err
	}
	sets, err := readExclusive(ctx, e)
	if err != nil {
		return d, err
	}
	began, left := may.Clock(), may.Moves
	for _, c := range clusters {
		options := packing.Options{Risk: may.Risk, Reserve: may.Reserve, Moves: left}
		ways, best := packing.Ways(c.containers, c.hosts, options)
		if err := parallel.OnAllCores(ctx)(len(ways), func(i int) error { ways[i](); return nil }); err != nil {
			return d, err
		}
		p := best()
		if left >= 0 {
			left -= p.Moves
		}
		rounds, tight := packing.Rounds(c.containers, c.hosts, p.On, options)
		d.MovesTight += tight
		c.add(&p, rounds, c.lay(sets, &p, rounds, &d), &d)
	}
	d.Seconds = may.Clock().Sub(began).Seconds()
	return d, nil
}

// readClusters reads the hosts whose CPUs and memory are known, by cluster; unknown is how many others there are.
func readClusters(ctx context.Context, e engine.Engine) (clusters []*cluster, unknown int, err error) {
	err = engine.Each(ctx, e, "plan_hosts", func(h struct {
		Cluster, Node, HostGroups string
		HostCPUs                  *int
		HostMemoryBytes           *int64
	}) {
		if h.HostCPUs == nil || h.HostMemoryBytes == nil {
			unknown++
			return
		}
		if len(clusters) == 0 || clusters[len(clusters)-1].name != h.Cluster {
			clusters = append(clusters, &cluster{name: h.Cluster, places: map[string]int{}})
		}
		c := clusters[len(clusters)-1]
		c.places[h.Node] = len(c.hosts)
		c.nodes, c.groups = append(c.nodes, h.Node), append(c.groups, h.HostGroups)
		c.hosts = append(c.hosts, packing.Host{CPUs: float64(*h.HostCPUs), MemoryBytes: *h.HostMemoryBytes})
	})
	return clusters, unknown, err
}

// placed is a container that runs now, as plan_containers.sql tells of it.
type placed struct {
	ContainerNo                                               int64
	Cluster, Node, Namespace, Pod, Container, Service, Remedy string
	AllowedCPUs                                               *int
	CoresNow, UsedCPUs                                        *float64
	Runtime                                                   string
	MemoryBytes                                               *int64
}

// readContainers adds the containers to their clusters, with what they want.
func readContainers(ctx context.Context, e engine.Engine, clusters []*cluster, secondary func(service string) bool,
	d *view.Plan) error {
	demands, services := map[int64]*phases.Day{}, map[string]*phases.Day{}
	if err := engine.Each(ctx, e, "plan_demand", func(line struct {
		ContainerNo int64
		Service     string
		RunsNow     int
		Phase       int
		phases.Sums
	}) {
		if line.RunsNow == 1 {
			if demands[line.ContainerNo] == nil {
				demands[line.ContainerNo] = &phases.Day{}
			}
			demands[line.ContainerNo][line.Phase] = line.Sums
		}
		if services[line.Service] == nil {
			services[line.Service] = &phases.Day{}
		}
		services[line.Service][line.Phase].Add(line.Sums)
	}); err != nil {
		return err
	}
	byName, stay := map[string]*cluster{}, map[string]int{}
	for _, c := range clusters {
		byName[c.name] = c
	}
	err := engine.Each(ctx, e, "plan_containers", func(p placed) {
		c := byName[p.Cluster]
		host, known := 0, c != nil
		if known {
			host, known = c.places[p.Node]
		}
		if !known {
			d.ContainersUnknown++
			return
		}
		to, why := p.container(demands[p.ContainerNo].Or(services[p.Service]))
		to.On = host
		if why != "" {
			stay[why]++
			to.Stays = true
		}
		yields := p.Remedy == string(remedy.Secondary) || secondary != nil && secondary(p.Service)
		if to.Secondary = to.ExclusiveCPUs == 0 && yields; to.Secondary {
			d.Secondaries++
		}
		c.containers, c.numbers = append(c.containers, to), append(c.numbers, p.ContainerNo)
		c.names = append(c.names, view.Move{
			Cluster: p.Cluster, Namespace: p.Namespace, Pod: p.Pod, Container: p.Container, Service: p.Service, From: p.Node,
		})
		d.Containers++
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

// container is what the model takes, and why it has to stay where it is; "": it may move.
func (p *placed) container(wants *phases.Day) (c packing.Container, why string) {
	pinned := p.Remedy == string(remedy.Pin) && p.AllowedCPUs != nil
	if pinned {
		c.ExclusiveCPUs = float64(*p.AllowedCPUs)
	}
	switch {
	case wants != nil: // what it leaves idle of exclusive CPUs is there for secondaries
		c.Demand, c.MostCPUs = wants.Moments()
	case pinned:
	case p.CoresNow != nil:
		c.Demand, c.MostCPUs = phases.Constant(*p.CoresNow), *p.CoresNow
	default:
		why = noDemand
		if p.UsedCPUs != nil {
			c.Demand, c.MostCPUs = phases.Constant(*p.UsedCPUs), *p.UsedCPUs
		}
	}
	if p.MemoryBytes != nil {
		c.MemoryBytes = *p.MemoryBytes
	} else {
		why = cmp.Or(why, noMemory)
	}
	if p.Runtime == container.Systemd {
		why = ofHost
	}
	return c, why
}

// keepThoseOnEachHost has the containers stay of services that have one on each host, as a DaemonSet has, and returns
// how many there are.
func (c *cluster) keepThoseOnEachHost() (kept int) {
	if len(c.hosts) < leastOnHosts {
		return 0
	}
	type service struct{ namespace, name string }
	on := map[service]map[int]int{}
	for i := range c.containers {
		s := service{c.names[i].Namespace, c.names[i].Service}
		if on[s] == nil {
			on[s] = map[int]int{}
		}
		on[s][c.containers[i].On]++
	}
	for i := range c.containers {
		hosts := on[service{c.names[i].Namespace, c.names[i].Service}]
		_, kind := demand.WorkloadOf(c.names[i].Pod, "")
		each := len(hosts) == len(c.hosts) && !several(hosts) || kind == demand.DaemonSetOrJob && onEach(hosts, len(c.hosts))
		if each && !c.containers[i].Stays {
			c.containers[i].Stays = true
			kept++
		}
	}
	return kept
}

// add adds a cluster's plan to the document. cpus are the exclusive CPUs of the containers that move, by their places.
func (c *cluster) add(p *packing.Plan, rounds []int, cpus map[int]string, d *view.Plan) {
	d.HostsNow, d.Hosts, d.LowerBound = d.HostsNow+p.HostsNow, d.Hosts+p.Hosts, d.LowerBound+p.LowerBound
	d.Moves, d.OverNow, d.Over = d.Moves+p.Moves, d.OverNow+p.OverNow, d.Over+p.Over
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
