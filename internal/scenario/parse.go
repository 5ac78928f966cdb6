package scenario

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/strictyaml"
)

// Bounds of a scenario.
const (
	MaxFile      = 1 << 20
	MaxCPUs      = 1024
	MaxCgroups   = 256
	maxWorkloads = 256
	maxThreads   = 1 << 16
	MaxDepth     = 8
	maxMemory    = 256 << 20 // bytes that a run may need, by Scenario.Memory
	MaxDuration  = time.Hour

	minTime = time.Microsecond
	maxTime = time.Hour
)

// Defaults of missing keys.
const (
	defaultDuration = 10 * time.Second
	DefaultHZ       = 250
	DefaultKernel   = "6.12"
	DefaultWeight   = 100
	defaultQueue    = 10_000
	defaultBackoff  = 10 * time.Millisecond
	defaultHeap     = 128 << 20
	defaultRun      = 10 * time.Microsecond
	defaultSleep    = 10 * time.Millisecond
)

// Parse reads a scenario from YAML. file is its name in errors, which are *Error.
func Parse(file string, data []byte) (Scenario, error) {
	d := &decoder{file: file, lines: map[string]int{}}
	s := d.scenario(data)
	if d.err != nil {
		return Scenario{}, d.err
	}
	return s, nil
}

func (d *decoder) scenario(data []byte) Scenario {
	root, wrong := strictyaml.Document(data, MaxFile)
	switch d.take("", wrong); {
	case wrong != nil:
		return Scenario{}
	case root == nil:
		d.fail(0, "", "empty")
		return Scenario{}
	}
	s := Scenario{Duration: defaultDuration, Host: Host{
		HZ: DefaultHZ, CgroupVersion: 2, TimerSlack: 50 * time.Microsecond, UnthrottleIPI: 2 * time.Microsecond,
		LineOwn: 5 * time.Nanosecond, LineOther: 60 * time.Nanosecond, ColdCache: 20 * time.Microsecond,
	}}
	var cgroups, workloads *yaml.Node
	var all *spike
	version := 0
	d.object(root, "", fields{
		"version!": func(n *yaml.Node, key string) {
			d.integer(&version, 1, 1<<30)(n, key)
			if version > formatVersion {
				d.fail(n.Line, key, "%d: this unthrottle reads version %d", version, formatVersion)
			}
		},
		"about":      d.text(&s.About),
		"duration":   d.duration(&s.Duration, time.Millisecond, MaxDuration),
		"host!":      func(n *yaml.Node, key string) { d.host(n, key, &s.Host) },
		"cgroups":    func(n *yaml.Node, _ string) { cgroups = n },
		"spike":      d.spike(&all),
		"workloads!": func(n *yaml.Node, _ string) { workloads = n },
	})
	if d.err != nil {
		return s
	}
	if cgroups != nil {
		d.cgroups(cgroups, &s)
	}
	d.workloads(workloads, &s)
	if all != nil && d.err == nil {
		d.addSpike(*all, &s)
	}
	if d.err == nil {
		d.expand(&s)
	}
	d.check(&s)
	return s
}

func (d *decoder) host(n *yaml.Node, key string, h *Host) {
	kernel, hz, ticks := DefaultKernel, strconv.Itoa(DefaultHZ), "aligned"
	var constants *yaml.Node
	d.object(n, key, fields{
		"cpus!":          d.integer(&h.CPUs, 1, MaxCPUs),
		"hz":             d.choice(&hz, "100", "250", "300", "1000", "continuous"),
		"ticks":          d.choice(&ticks, "aligned", "spread"),
		"kernel":         d.text(&kernel),
		"cgroup_version": d.integer(&h.CgroupVersion, 1, 2),
		"topology":       func(n *yaml.Node, key string) { h.Topology = d.topology(n, key) },
		"clock_skew":     d.duration(&h.ClockSkew, 0, 100*time.Millisecond),
		"constants":      func(n *yaml.Node, _ string) { constants = n },
	})
	d.checkTopology(h, join(key, "topology"))
	if d.err != nil {
		return
	}
	rules, err := bandwidth.For(kernel)
	if err != nil {
		d.failAt(join(key, "kernel"), "%v", err)
	}
	h.Rules, h.SpreadTicks = rules, ticks == "spread"
	h.SetHZ(hz)
	if constants == nil {
		return
	}
	d.members(constants, join(key, "constants"), func(name string, at, value *yaml.Node) {
		inner := join(join(key, "constants"), name)
		text := d.scalar(value, inner)
		if d.err != nil {
			return
		}
		if err := h.Set(name, text); err != nil {
			d.fail(at.Line, join(key, "constants"), "%v", err)
		}
	})
}

func (d *decoder) cgroups(n *yaml.Node, s *Scenario) {
	parents := map[string]string{}
	var all []Cgroup
	d.members(n, "cgroups", func(name string, at, value *yaml.Node) {
		key := join("cgroups", name)
		d.lines[key] = at.Line
		d.name(at, "cgroups")
		if len(all) == MaxCgroups {
			d.fail(at.Line, key, "more than %d cgroups", MaxCgroups)
		}
		c := Cgroup{Name: name, Parent: -1, Weight: DefaultWeight,
			Limit: bandwidth.Unlimited()}
		parent := ""
		d.object(value, key, fields{
			"parent": d.text(&parent),
			"quota":  d.duration(&c.Limit.Quota, minTime, maxTime),
			"period": d.duration(&c.Limit.Period, minTime, maxTime),
			"burst":  d.duration(&c.Limit.Burst, 0, maxTime),
			"weight": d.integer(&c.Weight, 1, 10000),
			"cpus":   d.cpus(&c.CPUs),
			"mems":   d.mems(&c.Mems),
			"remedy": func(n *yaml.Node, key string) { c.Remedy = d.remedy(n, key) },
		})
		all, parents[name] = append(all, c), parent
	})
	if d.err == nil {
		s.Cgroups = d.nest(all, parents)
	}
}

func (d *decoder) remedy(n *yaml.Node, key string) *Remedy {
	var r Remedy
	kind, kinds, keys := "", []string(nil), map[string][]string{}
	for _, e := range effects {
		kinds, keys[string(e.kind)] = append(kinds, string(e.kind)), e.keys
	}
	d.object(n, key, fields{
		"kind!":  d.choice(&kind, kinds...),
		"cpus":   d.integer(&r.CPUs, 1, MaxCPUs),
		"burst":  d.duration(&r.Burst, minTime, maxTime),
		"factor": d.number(&r.Factor, 1000),
		"credit": d.duration(&r.Credit, 0, maxTime), "widest": d.integer(&r.Widest, 1, MaxCPUs),
		"period": d.duration(&r.Period, minTime, maxTime),
	})
	r.Kind = RemedyKind(kind)
	d.keysOfKind(n, key, kind, keys, "kind")
	return &r
}

// nest orders the cgroups so that each comes after its parent.
func (d *decoder) nest(cgroups []Cgroup, parents map[string]string) []Cgroup {
	byName, placed := map[string]Cgroup{}, map[string]int{}
	for _, c := range cgroups {
		byName[c.Name] = c
	}
	var out []Cgroup
	var place func(name string, below []string) int
	place = func(name string, below []string) int {
		key := join(join("cgroups", name), "parent")
		if i, ok := placed[name]; ok {
			return i
		}
		c, parent := byName[name], parents[name]
		if len(below) >= MaxDepth {
			d.failAt(key, "nested more than %d deep, or a circle", MaxDepth)
		}
		if parent != "" {
			if _, ok := byName[parent]; !ok {
				d.failAt(key, "%s: there is no such cgroup", strictyaml.Shown(parent))
			}
			for _, b := range append(below, name) {
				if b == parent {
					d.failAt(key, "%s: a circle: it lies below this cgroup", strictyaml.Shown(parent))
				}
			}
			if d.err != nil {
				return -1
			}
			c.Parent = place(parent, append(below, name))
		}
		placed[name] = len(out)
		out = append(out, c)
		return placed[name]
	}
	for _, c := range cgroups {
		if d.err == nil {
			place(c.Name, nil)
		}
	}
	return out
}
