package scenario

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// keysOf each kind, beyond kind, cgroup and start.
var keysOf = map[string][]string{
	string(Burn):      {"threads"},
	string(SleepRun):  {"threads", "run!", "sleep!"},
	string(Fib):       {"threads!", "fast", "run", "sleep"},
	string(Sleeper):   {"threads", "run", "sleep"},
	string(Service):   {"threads!", "arrivals!", "work!", "queue"},
	string(Neighbour): {"threads", "on", "off"},
}

// only refuses keys that the chosen kind does not have, and asks for those it
// needs.
func (d *decoder) only(n *yaml.Node, key, kind string, keys map[string][]string, always ...string) {
	if d.err != nil {
		return
	}
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
}

func (d *decoder) workloads(n *yaml.Node, s *Scenario) {
	threads := 0
	d.members(n, "workloads", func(name string, at, value *yaml.Node) {
		key := join("workloads", name)
		d.lines[key] = at.Line
		d.name(at, "workloads")
		if len(s.Workloads) == MaxWorkloads {
			d.fail(at.Line, key, "more than %d workloads", MaxWorkloads)
		}
		w := d.workload(value, key, name, s)
		if threads += w.Threads; threads > MaxThreads {
			d.fail(at.Line, key, "more than %d threads in all", MaxThreads)
		}
		s.Workloads = append(s.Workloads, w)
	})
	if d.err == nil && len(s.Workloads) == 0 {
		d.failAt("workloads", "none: nothing would run")
	}
}

func (d *decoder) workload(n *yaml.Node, key, name string, s *Scenario) Workload {
	w := Workload{Name: name, Cgroup: -1, Threads: 1, Fast: 1, Run: Fixed(defaultRun), Sleep: defaultSleep, Queue: DefaultQueue}
	kind, cgroup := "", ""
	d.object(n, key, fields{
		"kind!":    d.choice(&kind, kinds()...),
		"cgroup":   d.text(&cgroup),
		"threads":  d.integer(&w.Threads, 1, MaxThreads),
		"start":    d.duration(&w.Start, 0, MaxDuration),
		"run":      d.distribution(&w.Run),
		"sleep":    d.duration(&w.Sleep, minTime, maxTime),
		"fast":     d.integer(&w.Fast, 0, MaxThreads),
		"on":       d.duration(&w.On, minTime, maxTime),
		"off":      d.duration(&w.Off, minTime, maxTime),
		"arrivals": func(n *yaml.Node, key string) { d.arrivals(n, key, &w) },
		"work":     d.distribution(&w.Work),
		"queue":    d.integer(&w.Queue, 0, 1_000_000),
	})
	w.Kind = Kind(kind)
	d.only(n, key, kind, keysOf, "kind", "cgroup", "start")
	if d.err != nil {
		return w
	}
	if cgroup != "" {
		w.Cgroup = slices.IndexFunc(s.Cgroups, func(c Cgroup) bool { return c.Name == cgroup })
		if w.Cgroup < 0 {
			d.failAt(join(key, "cgroup"), "%s: there is no such cgroup", shown(cgroup))
		}
	}
	if (w.On > 0) != (w.Off > 0) {
		d.failAt(key, "on and off go together; without both it runs all the time")
	}
	return w
}

func kinds() []string {
	var all []string
	for kind := range keysOf {
		all = append(all, kind)
	}
	slices.Sort(all)
	return all
}

// maxArrivals bounds a list of arrivals.
const maxArrivals = 10_000

func (d *decoder) arrivals(n *yaml.Node, key string, w *Workload) {
	d.object(n, key, fields{
		"per_second": d.number(&w.PerSecond, 1e6),
		"at": func(n *yaml.Node, key string) {
			if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxArrivals {
				d.fail(n.Line, key, "give a list of 1 to %d times", maxArrivals)
				return
			}
			w.At = make([]time.Duration, len(n.Content))
			least := time.Duration(0)
			for i, item := range n.Content {
				d.duration(&w.At[i], least, MaxDuration)(item, key)
				least = w.At[i]
			}
		},
	})
	if d.err == nil && (w.PerSecond > 0) == (len(w.At) > 0) {
		d.fail(n.Line, key, "give either per_second or at")
	}
}
