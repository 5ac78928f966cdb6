package report

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// exclusiveSets are the CPUs of the pinned containers that run now, by their numbers, and the groups of the hosts'
// CPUs.
type exclusiveSets map[int64]exclusiveSet

type exclusiveSet struct {
	groups string // "": not known
	cpus   cpuset.CPUSet
}

// readExclusive asks for them.
func readExclusive(ctx context.Context, e engine.Engine) (exclusiveSets, error) {
	sets := exclusiveSets{}
	err := engine.Each(ctx, e, "exclusive", func(line struct {
		ContainerNo         int64
		HostGroups, CPUList string
	}) {
		cpus, _ := topology.ParseList(line.CPUList) // a stranger's text: what is no list is not known
		sets[line.ContainerNo] = exclusiveSet{line.HostGroups, cpus}
	})
	return sets, err
}

// node is a host with its pinned containers, by their numbers; nil: it is not known how its CPUs are grouped or which
// the containers have, or they share CPUs. machines are what groups became, by their text.
func (sets exclusiveSets) node(groups string, pinned []int64, machines map[string]*topology.Machine) *placement.Node {
	m, known := machines[groups]
	if !known {
		if parsed, err := topology.ParseGroupText(groups); err == nil {
			m = &parsed
		}
		machines[groups] = m
	}
	if m == nil {
		return nil
	}
	s := placement.State{Machine: *m}
	for _, no := range pinned {
		cpus := sets[no].cpus
		if cpus.IsEmpty() {
			return nil
		}
		c := placement.Container{Name: numbered(no), CPUs: float64(cpus.Size()), Current: cpus}
		s.Containers = append(s.Containers, c)
	}
	n, refused, err := placement.NewNode(s)
	if err != nil || len(refused) > 0 {
		return nil
	}
	for _, no := range pinned {
		if h, ok := n.Find(numbered(no)); !ok || !n.Placed(h).Own.Equals(sets[no].cpus) {
			return nil
		}
	}
	return n
}

func numbered(no int64) string { return strconv.FormatInt(no, 10) }

// fragmentation is how many of the CPUs that pinned containers give back are the odd threads of cores that another
// container has a thread of, or the same one keeps: no set of whole cores can have them. nil: of a container that gives
// some back it is not known which CPUs it has.
func fragmentation(
	ctx context.Context, e engine.Engine, containers []sized, services map[string]*service,
) (*float64, error) {
	sets, err := readExclusive(ctx, e)
	if err != nil {
		return nil, err
	}
	type host struct{ cluster, node string }
	on, keeps := map[host][]int64{}, map[host]map[int64]int{} // of those that give some back how many they keep
	for i := range containers {
		c := &containers[i]
		if c.RunsNow == 0 || !c.pinned() || c.CoresNow == nil {
			continue
		}
		h, s := host{c.Cluster, c.Node}, services[c.Service]
		on[h] = append(on[h], c.ContainerNo)
		if kept := s.exclusive(c); kept > 0 && kept < int(*c.CoresNow) {
			if keeps[h] == nil {
				keeps[h] = map[int64]int{}
			}
			keeps[h][c.ContainerNo] = kept
		}
	}
	stranded, machines := 0, map[string]*topology.Machine{}
	for h, kept := range keeps {
		n := sets.node(sets[on[h][0]].groups, on[h], machines)
		if n == nil {
			return nil, nil
		}
		before := n.Score().Stranded
		for _, no := range on[h] {
			if kept[no] == 0 {
				continue
			}
			handle, _ := n.Find(numbered(no))
			if err := n.Resize(handle, float64(kept[no])); err != nil {
				return nil, fmt.Errorf("fragmentation of exclusive CPUs on %s: %w", h.node, err)
			}
		}
		stranded += max(0, n.Score().Stranded-before)
	}
	return new(float64(stranded)), nil
}
