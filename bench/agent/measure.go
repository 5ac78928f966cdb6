package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
)

// scrapeInterval is how often metrics are collected, by cAdvisor's variant itself and from the agent.
const scrapeInterval = 15 * time.Second

// measure runs all variants over one scenario at the same time and takes their CPU time over the window.
func measure(ctx context.Context, s scenario, p plan, others programs) (results []result, err error) {
	b, err := newTestbed(s.cgroups)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.remove()) }()
	life := p.warm + p.window + 30*time.Second
	var load, variants []*child
	defer func() { stopAll(load) }()
	defer func() { stopAll(variants) }()
	sleepers, err := b.occupy(life)
	load = append(load, sleepers...)
	if err != nil {
		return nil, err
	}
	walkers := (s.stopped + cgroupsPerWalker - 1) / cgroupsPerWalker
	for i := range walkers {
		c, err := startVariant(variantWalker, job{Top: b.top, Cgroups: s.stopped, First: i, Step: walkers, Life: life})
		if err != nil {
			return nil, err
		}
		load = append(load, c)
	}
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
	scraping, end := context.WithCancel(ctx)
	defer end()
	for _, c := range more {
		go scrape(scraping, c)
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

// startOthers starts the programs that are not variants of this one.
func (b *testbed) startOthers(others programs) ([]*child, error) {
	var all []*child
	add := func(name, program string, args ...string) error {
		c, err := start(name, program, args...)
		if err == nil {
			all = append(all, c)
		}
		return err
	}
	if others.unthrottle != "" {
		config := filepath.Join(b.dir, "agent.yaml")
		text := "version: 1\nmode: observe\nlisten: 127.0.0.1:0\nscope: " + b.top + "\nrules: []\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return all, err
		}
		if err := add(variantAgent, others.unthrottle, "agent", "--config", config, "--state-dir", filepath.Join(b.dir, "state")); err != nil {
			return all, err
		}
	}
	if others.cadvisor != "" {
		if err := add(variantCadvisor, others.cadvisor, "-prefix", b.top); err != nil {
			return all, err
		}
		return all, add(variantCadvisorCPU, others.cadvisor, "-prefix", b.top, "-only-cpu")
	}
	return all, nil
}

// scrape reads the metrics of a child that says where they are.
func scrape(ctx context.Context, c *child) {
	for {
		if clock.Sleep(ctx, scrapeInterval) != nil {
			return
		}
		_, rest, ok := strings.Cut(c.stderr.String(), "http://")
		address, _, _ := strings.Cut(rest, ";")
		if !ok {
			continue
		}
		answer, err := http.Get("http://" + strings.TrimSpace(address))
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
}
