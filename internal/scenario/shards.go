package scenario

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/scenario/balance"
)

// Defaults of shards that clients mark dead.
const (
	defaultDeadAfter = 5
	defaultDeadFor   = 5 * time.Second
)

// Shards is a service in several equal parts. Each part is a workload in a cgroup of its own, and one set of
// clients distributes the requests.
type Shards struct {
	Name    string // of the whole service; its shards are Name-1 and so on
	First   int    // index in Scenario.Workloads; the others follow it
	Balance balance.Rule
}

// shards reads the number of shards, and how clients distribute their load.
func (d *decoder) shards(n *yaml.Node, key string) *balance.Rule {
	r, kind := balance.Rule{}, string(balance.RoundRobin)
	d.object(n, key, fields{
		"count!":  d.integer(&r.Shards, 2, balance.MaxShards),
		"balance": d.choice(&kind, string(balance.RoundRobin), string(balance.LeastOutstanding), string(balance.Hash)),
		"skew":    d.atLeast(&r.Skew, 0, balance.MaxSkew),
		"dead": func(n *yaml.Node, key string) {
			r.DeadAfter, r.DeadFor = defaultDeadAfter, defaultDeadFor
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

// expand puts copies of a service, its collector and its cgroup in place of a service with shards.
func (d *decoder) expand(s *Scenario) {
	cgroups := map[int][]int{} // of each service with shards, by index in the file
	for i := range s.Workloads {
		if s.Workloads[i].Shards != nil && d.err == nil {
			cgroups[i] = d.copyCgroup(s, i)
		}
	}
	if len(cgroups) == 0 || d.err != nil {
		return
	}
	written, moved := s.Workloads, make([]int, len(s.Workloads)) // the new place of each
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
			workload := w
			workload.Name, workload.Cgroup, workload.Shard = d.numbered("workloads", w.Name, shard), cgroup, shard
			if slices.ContainsFunc(written, func(other Workload) bool { return other.Name == workload.Name }) {
				d.failAt(join("workloads", w.Name), "a shard of it would be %s, which exists already", workload.Name)
			}
			s.Workloads = append(s.Workloads, workload)
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
	d.checkCounts(s)
}

// checkCounts refuses a scenario that the copies made too large.
func (d *decoder) checkCounts(s *Scenario) {
	threads := 0
	for i := range s.Workloads {
		threads += s.Workloads[i].AllThreads()
	}
	switch {
	case len(s.Cgroups) > MaxCgroups:
		d.failAt("workloads", "%d cgroups, a copy for each shard counted: %d are allowed", len(s.Cgroups), MaxCgroups)
	case len(s.Workloads) > maxWorkloads:
		d.failAt("workloads", "%d workloads, each shard counted: %d are allowed", len(s.Workloads), maxWorkloads)
	case threads > maxThreads:
		d.failAt("workloads", "%d threads, those of each shard counted: %d are allowed", threads, maxThreads)
	}
}

// copyCgroup makes a cgroup for each shard of a service. The first one replaces the one in the file.
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
		cgroup := old
		cgroup.Name = d.numbered("cgroups", old.Name, shard)
		if slices.ContainsFunc(s.Cgroups, func(c Cgroup) bool { return c.Name == cgroup.Name }) {
			d.failAt(key, "a copy of cgroup %s would be %s, which exists already", old.Name, cgroup.Name)
		}
		all[shard] = len(s.Cgroups)
		if shard == 0 {
			all[0] = w.Cgroup
			s.Cgroups[w.Cgroup] = cgroup
			continue
		}
		s.Cgroups = append(s.Cgroups, cgroup)
	}
	return all
}

// numbered returns a copy's name, whose keys are those of the original.
func (d *decoder) numbered(section, name string, shard int) string {
	copied := name + "-" + strconv.Itoa(shard+1)
	from, to := join(section, name), join(section, copied)
	if len(copied) > maxName {
		d.failAt(from, "with a shard's number its name is longer than %d characters", maxName)
	}
	if _, ok := d.lines[to]; ok {
		return copied // the caller refuses it
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
