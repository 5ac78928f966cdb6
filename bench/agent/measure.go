package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
)

// measure runs all variants over one scenario at the same time and takes their CPU time over the window.
func measure(ctx context.Context, s scenario, p plan, others programs) (results []result, err error) {
	life := p.warm + p.window + 30*time.Second
	b, load, err := loaded(s, life)
	defer func() {
		stopAll(load)
		err = errors.Join(err, b.remove())
	}()
	if err != nil {
		return nil, err
	}
	var variants []*child
	defer func() { stopAll(variants) }()
	for _, name := range []string{variantOnce, variantHot, variantBareOnce, variantBareHot} {
		c, err := startVariant(name, job{Top: b.top, Cgroups: s.cgroups, Stopped: s.stopped, Life: life})
		if err != nil {
			return nil, err
		}
		variants = append(variants, c)
	}
	more, err := b.startOthers(others)
	variants = append(variants, more...)
	if err != nil {
		return nil, err
	}
	if err := clock.Sleep(ctx, p.warm); err != nil {
		return nil, err
	}
	begin, before := time.Now(), cpuTimes(variants)
	if err := clock.Sleep(ctx, p.window); err != nil {
		return nil, err
	}
	wall, after := time.Since(begin), cpuTimes(variants)
	for i, a := range variants {
		r := result{name: a.name, rss: residentBytes(a.cmd.Process.Pid), polled: -1}
		if before[i] == nil || after[i] == nil || r.rss == 0 {
			return nil, fmt.Errorf("%s has ended before its time: %s", a.name, a.stderr.String())
		}
		r.cost = (*after[i] - *before[i]).Seconds() / wall.Minutes() * 100 / float64(s.cgroups)
		results = append(results, r)
	}
	stopAll(variants)
	for i, a := range variants {
		_, _ = fmt.Sscanf(a.stderr.String(), polledFormat, &results[i].polled)
	}
	return results, nil
}

// loaded makes the cgroups of a scenario, with a process in each, and has some of them stopped again and again. The caller
// stops the load and removes the testbed, also after an error.
func loaded(s scenario, life time.Duration) (b *testbed, load []*child, err error) {
	if b, err = newTestbed(s.cgroups); err != nil {
		return b, nil, err
	}
	if load, err = b.occupy(life); err != nil {
		return b, load, err
	}
	walkers := (s.stopped + cgroupsPerWalker - 1) / cgroupsPerWalker
	for i := range walkers {
		c, err := startVariant(variantWalker, job{Top: b.top, Cgroups: s.stopped, First: i, Step: walkers, Life: life})
		if err != nil {
			return b, load, err
		}
		load = append(load, c)
	}
	return b, load, nil
}

// startOthers starts the programs that are not variants of this one.
func (b *testbed) startOthers(others programs) ([]*child, error) {
	var children []*child
	add := func(name, program string, args ...string) error {
		c, err := start(name, program, args...)
		if err == nil {
			children = append(children, c)
		}
		return err
	}
	if others.cadvisor != "" {
		if err := add(variantCadvisor, others.cadvisor, "-prefix", b.top); err != nil {
			return children, err
		}
		return children, add(variantCadvisorCPU, others.cadvisor, "-prefix", b.top, "-only-cpu")
	}
	return children, nil
}
