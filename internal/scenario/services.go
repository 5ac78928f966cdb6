package scenario

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/scenario/balance"
	"github.com/unthrottle/unthrottle/internal/strictyaml"
)

// Names of the pool and the class of a service in the short form.
const (
	simplePool  = "worker"
	simpleClass = "request"
)

// writtenService is a service as its file has it: in the short form (threads, arrivals, work, queue of the
// one pool and class), or with pools and classes.
type writtenService struct {
	Server
	io             size
	queue          int
	arrivals       *Arrivals
	pools, classes *yaml.Node
	shards         *balance.Rule // nil: none
}

func newWrittenService() writtenService {
	return writtenService{io: size{n: 1}, queue: defaultQueue}
}

// server makes the service from its written form.
func (d *decoder) server(in *written, key string, s *Scenario) *Server {
	w := &in.service
	w.IO = d.resolve(w.io, join(key, "io"), s, in.Cgroup)
	if w.classes == nil {
		d.short(in, key)
	} else {
		d.long(in, key, s)
	}
	if d.err != nil {
		return nil
	}
	if w.Retries.Max > 0 && w.Timeout == 0 {
		d.failAt(join(key, "retries"), "without a timeout only refused tries are tried again: give timeout too")
	}
	if w.shards != nil && w.shards.DeadAfter > 0 && w.Timeout == 0 {
		d.failAt(join(join(key, "shards"), "dead"), "without a timeout a try fails only if it is refused: give timeout too")
	}
	for _, c := range w.Classes {
		if c.Touches > 0 && w.Shared < 64 {
			d.failAt(key, "%s touches %d cache lines of shared data, and there is none: give shared", c.Name, c.Touches)
		}
	}
	return &w.Server
}

func (d *decoder) short(in *written, key string) {
	w := &in.service
	for _, name := range []string{"threads", "arrivals", "work"} {
		if !in.keys[name] {
			d.failAt(key, "%s is missing: a service has threads, arrivals and work, or classes", name)
			return
		}
	}
	if w.pools != nil {
		d.failAt(join(key, "pools"), "pools without classes of requests: give classes too")
		return
	}
	w.Pools = []Pool{{Name: simplePool, Threads: in.Threads, Queue: w.queue}}
	w.Classes = []Class{{Name: simpleClass, Work: in.work, Arrivals: *w.arrivals}}
}

func (d *decoder) long(in *written, key string, s *Scenario) {
	w := &in.service
	for _, name := range []string{"threads", "arrivals", "work", "queue"} {
		if in.keys[name] {
			d.failAt(join(key, name), "belongs into a pool or class where there are classes")
			return
		}
	}
	if w.pools != nil {
		d.members(w.pools, join(key, "pools"), func(name string, at, value *yaml.Node) {
			inner := join(join(key, "pools"), name)
			d.lines[inner] = at.Line
			d.name(at, join(key, "pools"))
			switch {
			case len(name) > maxPoolName:
				d.fail(at.Line, inner, "its threads are named after it: 1 to %d characters", maxPoolName)
			case len(w.Pools) == maxPools:
				d.fail(at.Line, inner, "more than %d pools", maxPools)
			}
			w.Pools = append(w.Pools, d.pool(value, inner, name, s, in.Cgroup))
		})
	}
	d.members(w.classes, join(key, "classes"), func(name string, at, value *yaml.Node) {
		inner := join(join(key, "classes"), name)
		d.lines[inner] = at.Line
		d.name(at, join(key, "classes"))
		if len(w.Classes) == maxClasses {
			d.fail(at.Line, inner, "more than %d classes", maxClasses)
		}
		w.Classes = append(w.Classes, d.class(value, inner, name, w.Pools))
	})
	if d.err == nil && len(w.Classes) == 0 {
		d.failAt(join(key, "classes"), "none: no request would come")
	}
}

func (d *decoder) pool(n *yaml.Node, key, name string, s *Scenario, cgroup int) Pool {
	p, threads, queues := Pool{Name: name, Queue: defaultQueue}, size{}, "shared"
	d.object(n, key, fields{
		"threads!": d.threads(&threads),
		"queue":    d.integer(&p.Queue, 1, maxQueue),
		"queues":   d.choice(&queues, "shared", "per-thread"),
	})
	p.Threads, p.PerThread = d.resolve(threads, join(key, "threads"), s, cgroup), queues == "per-thread"
	if p.PerThread && p.Queue < p.Threads {
		d.failAt(join(key, "queue"), "%d: less than one for each of %d threads", p.Queue, p.Threads)
	}
	return p
}

func (d *decoder) class(n *yaml.Node, key, name string, pools []Pool) Class {
	c, pool := Class{Name: name, Pool: -1}, ""
	var arrivals *Arrivals
	d.object(n, key, fields{
		"pool":      d.text(&pool),
		"work!":     d.distribution(&c.Work),
		"arrivals!": func(n *yaml.Node, key string) { arrivals = d.arrivals(n, key) },
		"touches":   d.integer(&c.Touches, 0, maxTouches),
		"locked":    d.share(&c.Locked),
	})
	if d.err != nil {
		return c
	}
	c.Arrivals = *arrivals
	if pool != "" {
		c.Pool = slices.IndexFunc(pools, func(p Pool) bool { return p.Name == pool })
		if c.Pool < 0 {
			d.failAt(join(key, "pool"), "%s: there is no such pool", strictyaml.Shown(pool))
		}
	}
	return c
}

func (d *decoder) arrivals(n *yaml.Node, key string) *Arrivals {
	a, gaps := Arrivals{Burst: 1}, "random"
	d.object(n, key, fields{
		"per_second": d.number(&a.PerSecond, maxPerSecond),
		"burst":      d.integer(&a.Burst, 1, maxBurst),
		"gaps":       d.choice(&gaps, "random", "equal"),
		"at": func(n *yaml.Node, key string) {
			if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxArrivals {
				d.fail(n.Line, key, "give a list of 1 to %d times", maxArrivals)
				return
			}
			a.At = make([]time.Duration, len(n.Content))
			least := time.Duration(0)
			for i, item := range n.Content {
				d.duration(&a.At[i], least, MaxDuration)(item, key)
				least = a.At[i]
			}
		},
	})
	a.Regular = gaps == "equal"
	if d.err == nil && (a.PerSecond > 0) == (len(a.At) > 0) {
		d.fail(n.Line, key, "give either per_second or at")
	}
	if d.err == nil && len(a.At) > 0 && (a.Burst > 1 || a.Regular) {
		d.fail(n.Line, key, "burst and gaps go with per_second: at says itself when requests come")
	}
	return &a
}

func (d *decoder) retries(n *yaml.Node, key string) Retries {
	r := Retries{Backoff: defaultBackoff}
	d.object(n, key, fields{
		"max!":    d.integer(&r.Max, 1, maxRetries),
		"budget":  d.number(&r.Budget, maxRetries),
		"backoff": d.duration(&r.Backoff, 0, maxTime),
	})
	return r
}

func (d *decoder) phases(n *yaml.Node, key string) []Phase {
	if d.err == nil && (n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxPhases) {
		d.fail(n.Line, key, "give a list of 1 to %d phases, such as [{for: 5s, factor: 1}]", maxPhases)
	}
	var all []Phase
	for _, item := range n.Content {
		var p Phase
		d.object(item, key, fields{
			"for!":    d.duration(&p.For, time.Millisecond, MaxDuration),
			"factor!": d.atLeast(&p.Factor, 0, 1000),
		})
		all = append(all, p)
	}
	return all
}

// spike is a time in which a factor multiplies the load of all services.
type spike struct {
	at, length time.Duration
	factor     float64
}

func (d *decoder) spike(into **spike) read {
	return func(n *yaml.Node, key string) {
		s := &spike{}
		d.object(n, key, fields{
			"at!":     d.duration(&s.at, 0, MaxDuration),
			"for!":    d.duration(&s.length, time.Millisecond, MaxDuration),
			"factor!": d.atLeast(&s.factor, 0, 1000),
		})
		*into = s
	}
}

// addSpike adds a spike to the phases of every service.
func (d *decoder) addSpike(all spike, s *Scenario) {
	if all.at+all.length > s.Duration {
		d.failAt("spike", "it lasts to %v: the scenario ends at %v", all.at+all.length, s.Duration)
	}
	spiking := false
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.Kind == Service {
			w.Phases = all.spiked(w.Phases, w.Start, s.Duration)
			spiking = true
		}
	}
	if !spiking {
		d.failAt("spike", "there is no service whose load it would raise")
	}
}

// spiked returns a workload's phases with a spike in them. start is the workload's.
func (s spike) spiked(phases []Phase, start, duration time.Duration) []Phase {
	if len(phases) == 0 {
		phases = []Phase{{For: duration, Factor: 1}}
	}
	var out []Phase
	at := start
	for i, p := range phases {
		end := at + p.For
		if i == len(phases)-1 {
			end = max(end, duration)
		}
		// Up to three pieces: before, in and after the spike.
		for _, cut := range []time.Duration{s.at, s.at + s.length, end} {
			if cut = min(cut, end); cut <= at {
				continue
			}
			piece := Phase{For: cut - at, Factor: p.Factor}
			if at >= s.at && cut <= s.at+s.length {
				piece.Factor *= s.factor
			}
			out = append(out, piece)
			at = cut
		}
	}
	return out
}
