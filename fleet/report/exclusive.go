package report

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// exclusiveSets are the CPUs of the pinned containers that run now, by their numbers, and the groups of the hosts' CPUs.
type exclusiveSets map[int64]exclusiveSet

type exclusiveSet struct {
	groups string // "": not known
	cpus   cpuset.CPUSet
}

// exclusiveOf asks for them.
func exclusiveOf(ctx context.Context, e engine.Engine) (exclusiveSets, error) {
	all := exclusiveSets{}
	err := e.Ask(ctx, "exclusive", func(scan func(...any) error) error {
		var no int64
		var of exclusiveSet
		var list string
		if err := scan(&no, &of.groups, &list); err != nil {
			return err
		}
		of.cpus, _ = topology.ParseList(list) // a stranger's text: what is no list is not known
		all[no] = of
		return nil
	})
	return all, err
}

// node is a host with its pinned containers, by their numbers; nil: it is not known how its CPUs are grouped or which the containers have, or they share
// CPUs. machines are what groups became, by their text.
func (all exclusiveSets) node(groups string, pinned []int64, machines map[string]*topology.Machine) *placement.Node {
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
		cpus := all[no].cpus
		if cpus.IsEmpty() {
			return nil
		}
		s.Containers = append(s.Containers, placement.Container{Name: nameOf(no), CPUs: float64(cpus.Size()), Current: cpus})
	}
	n, refused, err := placement.NewNode(s)
	if err != nil || len(refused) > 0 {
		return nil
	}
	for _, no := range pinned {
		if h, ok := n.Find(nameOf(no)); !ok || !n.Placed(h).Own.Equals(all[no].cpus) {
			return nil
		}
	}
	return n
}

func nameOf(no int64) string { return strconv.FormatInt(no, 10) }

// fragmentation is how many of the CPUs that pinned containers give back are the odd threads of cores that another container has a thread of, or
// the same one keeps: no set of whole cores can have them. nil: of a container that gives some back it is not known which CPUs it has.
func fragmentation(ctx context.Context, e engine.Engine, all []sized, sums map[string]*sum, needs map[string]*need) (*float64, error) {
	sets, err := exclusiveOf(ctx, e)
	if err != nil {
		return nil, err
	}
	type host struct{ cluster, node string }
	var hosts []host
	on, keeps := map[host][]int64{}, map[int64]int{} // of those that give some back how many they keep
	for i := range all {
		c := &all[i]
		if !c.now || !c.pinned() || c.cores == nil {
			continue
		}
		at := host{c.cluster, c.node}
		if on[at] == nil {
			hosts = append(hosts, at)
		}
		on[at] = append(on[at], c.no)
		if n := needs[c.service]; n != nil {
			if kept := sums[c.service].exclusive(*c.cores, n); kept > 0 && kept < int(*c.cores) {
				keeps[c.no] = kept
			}
		}
	}
	stranded, machines := 0, map[string]*topology.Machine{}
	for _, at := range hosts {
		if !slices.ContainsFunc(on[at], func(no int64) bool { return keeps[no] > 0 }) {
			continue
		}
		n := sets.node(sets[on[at][0]].groups, on[at], machines)
		if n == nil {
			return nil, nil
		}
		before := n.Score().Stranded
		for _, no := range on[at] {
			if keeps[no] == 0 {
				continue
			}
			h, _ := n.Find(nameOf(no))
			if err := n.Resize(h, float64(keeps[no])); err != nil {
				return nil, fmt.Errorf("fragmentation of exclusive CPUs on %s: %w", at.node, err)
			}
		}
		stranded += max(0, n.Score().Stranded-before)
	}
	return new(float64(stranded)), nil
}
