package scenario

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/sim/scenario/balance"
)

// Defaults of shards that clients mark dead.
const (
	DefaultDeadAfter = 5
	DefaultDeadFor   = 5 * time.Second
)

// Shards is a service in several equal parts, each a workload in a cgroup of its
// own, with one set of clients that share the requests out.
type Shards struct {
	Name    string // of the service as a whole; its shards are Name-1 and so on
	First   int    // index in Scenario.Workloads; the others follow it
	Balance balance.Rule
}

// shards reads how many there are, and how their load is shared out.
func (d *decoder) shards(n *yaml.Node, key string) *balance.Rule {
	r, kind := balance.Rule{}, string(balance.RoundRobin)
	d.object(n, key, fields{
		"count!":  d.integer(&r.Shards, 2, balance.MaxShards),
		"balance": d.choice(&kind, string(balance.RoundRobin), string(balance.LeastOutstanding), string(balance.Hash)),
		"skew":    d.atLeast(&r.Skew, 0, balance.MaxSkew),
		"dead": func(n *yaml.Node, key string) {
			r.DeadAfter, r.DeadFor = DefaultDeadAfter, DefaultDeadFor
			d.object(n, key, fields{
				"after": d.integer(&r.DeadAfter, 1, balance.MaxDeadAfter),
				"for":   d.duration(&r.DeadFor, time.Millisecond, balance.MaxDeadFor),
			})
		},
	})
	r.Kind = balance.Kind(kind)
	if d.err == nil && r.Skew > 0 && r.Kind != balance.Hash {
		d.failAt(join(key, "skew"), "goes with balance: hash; %s gives every shard the same", kind)
	}
	return &r
}

// expand puts copies of a service, its collector and its cgroup where the file has
// one with shards.
func (d *decoder) expand(s *Scenario) {
	cgroups := map[int][]int{} // of each service with shards, by index as written
	for i := range s.Workloads {
		if s.Workloads[i].Shards != nil && d.err == nil {
			cgroups[i] = d.copyCgroup(s, i)
		}
	}
	if len(cgroups) == 0 || d.err != nil {
		return
	}
	written, moved := s.Workloads, make([]int, len(s.Workloads)) // where each goes
	s.Workloads = nil
	for i, w := range written {
		moved[i] = len(s.Workloads)
		of := i
		if w.Collector != nil {
			of = w.Collector.Service
		}
		if cgroups[of] == nil {
			s.Workloads = append(s.Workloads, w)
			continue
		}
		for shard, cgroup := range cgroups[of] {
			one := w
			one.Name, one.Cgroup, one.Shard = d.numbered("workloads", w.Name, shard), cgroup, shard
			if slices.ContainsFunc(written, func(other Workload) bool { return other.Name == one.Name }) {
				d.failAt(join("workloads", w.Name), "a shard of it would be %s, which is there already", one.Name)
			}
			s.Workloads = append(s.Workloads, one)
		}
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if w.Collector != nil {
			own := *w.Collector
			own.Service = moved[own.Service] + w.Shard
			w.Collector = &own
		}
		if w.Shards != nil && w.Shard == 0 {
			w.Shards.First = i
		}
	}
	d.counted(s)
}

// counted refuses what became too much by the copies.
func (d *decoder) counted(s *Scenario) {
	threads := 0
	for i := range s.Workloads {
		threads += s.Workloads[i].AllThreads()
	}
	switch {
	case len(s.Cgroups) > MaxCgroups:
		d.failAt("workloads", "%d cgroups, a copy for each shard counted: %d are allowed", len(s.Cgroups), MaxCgroups)
	case len(s.Workloads) > MaxWorkloads:
		d.failAt("workloads", "%d workloads, each shard counted: %d are allowed", len(s.Workloads), MaxWorkloads)
	case threads > MaxThreads:
		d.failAt("workloads", "%d threads, those of each shard counted: %d are allowed", threads, MaxThreads)
	}
}

// copyCgroup makes a cgroup for each shard of a service: the first takes the place
// of the one in the file.
func (d *decoder) copyCgroup(s *Scenario, service int) []int {
	w := &s.Workloads[service]
	key := join(join("workloads", w.Name), "shards")
	if w.Cgroup < 0 {
		d.failAt(key, "give the service a cgroup: each shard gets a copy of it")
		return nil
	}
	old := s.Cgroups[w.Cgroup]
	for i := range s.Cgroups {
		if s.Cgroups[i].Parent == w.Cgroup {
			d.failAt(key, "each shard gets a copy of cgroup %s, so nothing can lie below it, and %s does", old.Name, s.Cgroups[i].Name)
		}
	}
	for i := range s.Workloads {
		other := &s.Workloads[i]
		if i != service && other.Cgroup == w.Cgroup && (other.Collector == nil || other.Collector.Service != service) {
			d.failAt(key, "each shard gets a copy of cgroup %s, so nothing else can be in it, and %s is", old.Name, other.Name)
		}
	}
	all := make([]int, w.Shards.Balance.Shards)
	for shard := range all {
		one := old
		one.Name = d.numbered("cgroups", old.Name, shard)
		if slices.ContainsFunc(s.Cgroups, func(c Cgroup) bool { return c.Name == one.Name }) {
			d.failAt(key, "a copy of cgroup %s would be %s, which is there already", old.Name, one.Name)
		}
		all[shard] = len(s.Cgroups)
		if shard == 0 {
			all[0] = w.Cgroup
			s.Cgroups[w.Cgroup] = one
			continue
		}
		s.Cgroups = append(s.Cgroups, one)
	}
	return all
}

// numbered is a copy's name; its keys are those of what it is a copy of.
func (d *decoder) numbered(section, name string, shard int) string {
	copied := name + "-" + strconv.Itoa(shard+1)
	from, to := join(section, name), join(section, copied)
	if len(copied) > maxName {
		d.failAt(from, "with a shard's number its name is longer than %d characters", maxName)
	}
	if _, ok := d.lines[to]; ok {
		return copied // refused by the caller
	}
	lines := map[string]int{}
	for key, line := range d.lines {
		if key == from || strings.HasPrefix(key, from+".") {
			lines[to+strings.TrimPrefix(key, from)] = line
		}
	}
	maps.Copy(d.lines, lines)
	return copied
}
