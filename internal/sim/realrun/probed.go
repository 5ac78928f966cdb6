package realrun

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

// Probed measures width and stopped time from the kernel's scheduling events. Active periods it leaves unmeasured.
type Probed struct{ Host *cgroup.Host }

// Watch implements Probe. A thread counts for its nearest watched cgroup only, so that cgroups within one another are
// watched by one probe per depth. Where the kernel refuses, the error is a *probe.Unavailable.
func (p Probed) Watch(cgroups map[string]cgroup.Group) (Watching, error) {
	w := &probing{cgroups: map[string]*probed{}}
	for name, g := range cgroups {
		depth := depthOf(g, cgroups)
		for len(w.probes) <= depth {
			opened, err := probe.Open(probe.Options{})
			if err != nil {
				w.Close()
				return nil, err
			}
			w.probes = append(w.probes, opened)
		}
		c := &probed{probe: w.probes[depth]}
		var err error
		if c.id, err = p.Host.ID(cgroup.CPU, g.Path); err == nil {
			err = c.probe.Watch(probe.Container{ID: c.id, Path: g.Path, Name: name})
		}
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("cgroup %s: width: %w", name, err)
		}
		w.cgroups[name] = c
	}
	return w, nil
}

// probing is the probes of a run.
type probing struct {
	probes  []*probe.Probe
	cgroups map[string]*probed
}

// probed is one cgroup.
type probed struct {
	probe *probe.Probe
	id    uint64
	first probe.Counts
}

func (w *probing) Begin() error {
	for name, c := range w.cgroups {
		var err error
		if c.first, err = c.probe.Read(c.id); err != nil {
			return fmt.Errorf("cgroup %s: width: %w", name, err)
		}
	}
	return nil
}

func (w *probing) End() (map[string]Measured, error) {
	measured := make(map[string]Measured, len(w.cgroups))
	for name, c := range w.cgroups {
		last, err := c.probe.Read(c.id)
		if err != nil {
			return nil, fmt.Errorf("cgroup %s: width: %w", name, err)
		}
		measured[name] = measuredBetween(&c.first, &last)
	}
	return measured, nil
}

func (w *probing) Close() {
	for _, p := range w.probes {
		p.Close()
	}
	w.probes = nil
}

// depthOf is how many of the cgroups are above this one.
func depthOf(g cgroup.Group, all map[string]cgroup.Group) int {
	depth := 0
	for _, other := range all {
		if other.Path != g.Path && cgroup.Below(g.Path, other.Path) {
			depth++
		}
	}
	return depth
}

func measuredBetween(first, last *probe.Counts) Measured {
	m := Measured{Width: []scenario.Width{}}
	for cpus, ns := range last.WidthNS {
		if cpus < len(first.WidthNS) { // the probe gives no more levels than it has seen
			ns -= first.WidthNS[cpus]
		}
		if ns > 0 {
			m.Width = append(m.Width, scenario.Width{CPUs: cpus, Seconds: float64(ns) / 1e9})
		}
	}
	if first.StoppedNS != nil && last.StoppedNS != nil {
		m.StoppedSeconds = new(float64(*last.StoppedNS-*first.StoppedNS) / 1e9)
	}
	return m
}
