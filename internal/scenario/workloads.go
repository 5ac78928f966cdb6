package scenario

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/strictyaml"
)

// keysOf has the keys of each kind, beyond kind, cgroup and start.
var keysOf = map[string][]string{
	string(Burn):     {"threads"},
	string(SleepRun): {"threads", "run!", "sleep!", "phases"},
	string(Fib):      {"threads!", "fast", "run", "sleep"},
	string(Sleeper):  {"threads", "run", "sleep"},
	string(Service): {"threads", "arrivals", "work", "queue", "io", "pools", "classes", "shared", "inflate",
		"timeout", "retries", "rate_limit", "phases", "shards"},
	string(Neighbour): {"threads", "on", "off"},
	string(GC):        {"threads!", "of!", "work!", "requests", "every"},
	string(JVM):       {"threads", "heap", "live", "run", "sleep"},
	string(Kernel):    {"threads", "run!", "sleep!"},
}

// keysOfKind refuses keys that the chosen kind does not have, and requires some. It returns the keys that are
// there.
func (d *decoder) keysOfKind(n *yaml.Node, key, kind string, keys map[string][]string, always ...string) map[string]bool {
	known := keys[kind]
	seen := map[string]bool{}
	d.members(n, key, func(name string, at, _ *yaml.Node) {
		seen[name] = true
		if !slices.Contains(always, name) && !slices.Contains(known, name) && !slices.Contains(known, name+"!") {
			d.fail(at.Line, join(key, name), "kind %s does not have this", kind)
		}
	})
	for _, name := range known {
		if required, ok := strings.CutSuffix(name, "!"); ok && !seen[required] {
			d.failAt(key, "%s is missing: kind %s needs it", required, kind)
		}
	}
	return seen
}

func (d *decoder) workloads(n *yaml.Node, s *Scenario) {
	threads := 0
	collects := map[int]string{} // the service of each collector
	d.members(n, "workloads", func(name string, at, value *yaml.Node) {
		key := join("workloads", name)
		d.lines[key] = at.Line
		d.name(at, "workloads")
		if len(s.Workloads) == maxWorkloads {
			d.fail(at.Line, key, "more than %d workloads", maxWorkloads)
		}
		w, of := d.workload(value, key, name, s)
		if threads += w.AllThreads(); threads > maxThreads {
			d.fail(at.Line, key, "more than %d threads in all", maxThreads)
		}
		if w.Kind == GC {
			collects[len(s.Workloads)] = of
		}
		s.Workloads = append(s.Workloads, w)
	})
	if d.err == nil && len(s.Workloads) == 0 {
		d.failAt("workloads", "none: nothing would run")
	}
	d.collectors(s, collects)
}

// written is a workload as its file has it, before the values that it depends on are known.
type written struct {
	Workload
	kind, cgroup, of string
	threads          size
	work             Duration
	every            time.Duration
	requests         int
	java             Java
	service          writtenService
	keys             map[string]bool // keys in the file; names may contain dots, so decoder.lines does not tell
}

func (d *decoder) workload(n *yaml.Node, key, name string, s *Scenario) (w Workload, of string) {
	in := written{
		Workload: Workload{Name: name, Cgroup: -1, Fast: 1, Run: Fixed(defaultRun), Sleep: Fixed(defaultSleep)},
		threads:  size{n: 1}, java: Java{Heap: defaultHeap, Live: defaultHeap / 4}, service: newWrittenService(),
	}
	d.object(n, key, fields{
		"kind!":      d.choice(&in.kind, kinds()...),
		"cgroup":     d.text(&in.cgroup),
		"threads":    d.threads(&in.threads),
		"start":      d.duration(&in.Start, 0, MaxDuration),
		"run":        d.distribution(&in.Run),
		"sleep":      d.distribution(&in.Sleep),
		"fast":       d.integer(&in.Fast, 0, maxThreads),
		"on":         d.duration(&in.On, minTime, maxTime),
		"off":        d.duration(&in.Off, minTime, maxTime),
		"phases":     func(n *yaml.Node, key string) { in.Phases = d.phases(n, key) },
		"work":       d.distribution(&in.work),
		"of":         d.text(&in.of),
		"requests":   d.integer(&in.requests, 1, 1<<30),
		"every":      d.duration(&in.every, minTime, maxTime),
		"heap":       d.bytes(&in.java.Heap, 16<<20, 4<<30),
		"live":       d.bytes(&in.java.Live, 1<<20, 2<<30),
		"arrivals":   func(n *yaml.Node, key string) { in.service.arrivals = d.arrivals(n, key) },
		"queue":      d.integer(&in.service.queue, 0, maxQueue),
		"io":         d.threads(&in.service.io),
		"pools":      func(n *yaml.Node, _ string) { in.service.pools = n },
		"classes":    func(n *yaml.Node, _ string) { in.service.classes = n },
		"shared":     d.bytes(&in.service.Shared, 0, maxShared),
		"inflate":    d.share(&in.service.Inflate),
		"timeout":    d.duration(&in.service.Timeout, minTime, maxTime),
		"retries":    func(n *yaml.Node, key string) { in.service.Retries = d.retries(n, key) },
		"rate_limit": func(n *yaml.Node, key string) { in.service.RateLimit = d.rateLimit(n, key) },
		"shards":     func(n *yaml.Node, key string) { in.service.shards = d.shards(n, key) },
	})
	in.Kind = Kind(in.kind)
	in.keys = d.keysOfKind(n, key, in.kind, keysOf, "kind", "cgroup", "start")
	if d.err != nil {
		return in.Workload, ""
	}
	if in.cgroup != "" {
		in.Cgroup = slices.IndexFunc(s.Cgroups, func(c Cgroup) bool { return c.Name == in.cgroup })
		if in.Cgroup < 0 {
			d.failAt(join(key, "cgroup"), "%s: there is no such cgroup", strictyaml.Shown(in.cgroup))
			return in.Workload, ""
		}
	}
	in.Threads = d.resolve(in.threads, join(key, "threads"), s, in.Cgroup)
	d.kindKeys(&in, key, s)
	return in.Workload, in.of
}

// kindKeys fills in the keys of one kind.
func (d *decoder) kindKeys(in *written, key string, s *Scenario) {
	switch in.Kind {
	case Neighbour:
		if (in.On > 0) != (in.Off > 0) {
			d.failAt(key, "on and off go together; without both it runs all the time")
		}
	case Service:
		in.Server = d.server(in, key, s)
		if d.err == nil {
			in.Threads = in.Server.poolThreads()
		}
		if rule := in.service.shards; rule != nil {
			in.Shards = &Shards{Name: in.Name, Balance: *rule}
		}
	case GC:
		if (in.requests > 0) == (in.every > 0) {
			d.failAt(key, "give either requests or every: how often it collects")
		}
		if in.work.Shape != Constant {
			d.failAt(join(key, "work"), "a collection's CPU time is one time")
		}
		in.Collector = &Collector{Work: in.work.Mean, Requests: in.requests, Every: in.every}
	case JVM:
		if in.Run.Shape != Constant || in.Sleep.Shape != Constant {
			d.failAt(key, "run and sleep of a JVM are one time each")
		}
		if in.java.Live > in.java.Heap/2 {
			d.failAt(join(key, "live"), "more than half of the heap of %d bytes: it would collect all the time", in.java.Heap)
		}
		in.java.Run = in.Run.Mean
		in.Java = &in.java
	}
}

// collectors finds the services that collectors stop.
func (d *decoder) collectors(s *Scenario, of map[int]string) {
	taken := map[int]bool{}
	for i := range s.Workloads {
		name, ok := of[i]
		if !ok || d.err != nil {
			continue
		}
		w := &s.Workloads[i]
		key := join(join("workloads", w.Name), "of")
		at := slices.IndexFunc(s.Workloads, func(other Workload) bool { return other.Name == name })
		switch {
		case at < 0 || s.Workloads[at].Kind != Service:
			d.failAt(key, "%s: there is no such service", strictyaml.Shown(name))
		case taken[at]:
			d.failAt(key, "%s: another collector stops it already", strictyaml.Shown(name))
		case s.Workloads[at].Cgroup != w.Cgroup || s.Workloads[at].Start != w.Start:
			d.failAt(key, "%s: a service and its collector are one process: give both the same cgroup and start", strictyaml.Shown(name))
		}
		taken[at] = true
		w.Collector.Service = at
	}
}

func kinds() []string {
	var all []string
	for kind := range keysOf {
		all = append(all, kind)
	}
	slices.Sort(all)
	return all
}
