package packing

import (
	"cmp"
	"slices"
)

// rename exchanges hosts of equal CPUs and memory in a placement, so that fewer containers have another host than now.
// Hosts with containers that stay keep theirs.
func rename(on []int, containers []Container, hosts []Host) {
	kept := make([]bool, len(hosts))
	for i := range containers {
		if c := &containers[i]; c.Stays && c.On >= 0 {
			kept[c.On] = true
		}
	}
	type pair struct{ host, was int }
	common := map[pair]int{}
	for i := range containers {
		host, was := on[i], containers[i].On
		if host >= 0 && was >= 0 && !kept[host] && !kept[was] && hosts[host] == hosts[was] {
			common[pair{host, was}]++
		}
	}
	pairs := make([]pair, 0, len(common))
	for p := range common {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(common[b], common[a]), cmp.Compare(a.host, b.host), cmp.Compare(a.was, b.was))
	})
	becomes, taken := make([]int, len(hosts)), make([]bool, len(hosts))
	for h := range becomes {
		becomes[h] = -1
		if kept[h] {
			becomes[h], taken[h] = h, true
		}
	}
	for _, p := range pairs {
		if becomes[p.host] < 0 && !taken[p.was] {
			becomes[p.host], taken[p.was] = p.was, true
		}
	}
	free := map[Host][]int{}
	for h := range hosts {
		if !taken[h] {
			free[hosts[h]] = append(free[hosts[h]], h)
		}
	}
	for h := range hosts {
		if becomes[h] < 0 {
			left := free[hosts[h]]
			becomes[h], free[hosts[h]] = left[0], left[1:]
		}
	}
	for i := range on {
		if on[i] >= 0 {
			on[i] = becomes[on[i]]
		}
	}
}
