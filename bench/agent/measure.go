package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
)

// scrapeInterval is how often metrics are collected, by cAdvisor's arm itself and from the agent.
const scrapeInterval = 15 * time.Second

// measure runs all arms over one scenario at the same time and takes their CPU time over the window.
func (g *ground) measure(ctx context.Context, s scenario, p plan, others programs) ([]result, error) {
	defer func() { _ = g.clear() }()
	if err := g.prepare(s.cgroups); err != nil {
		return nil, err
	}
	life := p.warm + p.window + 30*time.Second
	var load, arms []*child
	defer func() { stopAll(load) }()
	defer func() { stopAll(arms) }()
	sleepers, err := g.occupy(s.cgroups, life)
	load = append(load, sleepers...)
	if err != nil {
		return nil, err
	}
	walkers := (s.stopped + cgroupsPerWalker - 1) / cgroupsPerWalker
	for i := range walkers {
		c, err := startArm(armWalker, job{Top: g.top, Cgroups: s.stopped, First: i, Step: walkers, Life: life})
		if err != nil {
			return nil, err
		}
		load = append(load, c)
	}
	for _, name := range []string{armOnce, armHot, armBareOnce, armBareHot} {
		c, err := startArm(name, job{Top: g.top, Cgroups: s.cgroups, Stopped: s.stopped, Life: life})
		if err != nil {
			return nil, err
		}
		arms = append(arms, c)
	}
	more, err := g.startOthers(others)
	arms = append(arms, more...)
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
	begin, before := time.Now(), cpuTimes(arms)
	if err := clock.Sleep(ctx, p.window); err != nil {
		return nil, err
	}
	wall, after := time.Since(begin), cpuTimes(arms)
	var results []result
	for i, a := range arms {
		r := result{name: a.name, rss: residentBytes(a.cmd.Process.Pid), polled: -1}
		if before[i] == nil || after[i] == nil || r.rss == 0 {
			return nil, fmt.Errorf("%s has ended before its time: %s", a.name, a.stderr.String())
		}
		r.cost = (*after[i] - *before[i]).Seconds() / wall.Minutes() * 100 / float64(s.cgroups)
		results = append(results, r)
	}
	stopAll(arms)
	for i, a := range arms {
		_, _ = fmt.Sscanf(a.stderr.String(), polledFormat, &results[i].polled)
	}
	return results, nil
}

// startOthers starts the programs that are not arms of this one.
func (g *ground) startOthers(others programs) ([]*child, error) {
	var all []*child
	add := func(name, program string, args ...string) error {
		c, err := start(name, program, args...)
		if err == nil {
			all = append(all, c)
		}
		return err
	}
	if others.unthrottle != "" {
		config := filepath.Join(g.dir, "agent.yaml")
		text := "version: 1\nmode: observe\nlisten: 127.0.0.1:0\nscope: " + g.top + "\nrules: []\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return all, err
		}
		if err := add(armAgent, others.unthrottle, "agent", "--config", config, "--state-dir", filepath.Join(g.dir, "state")); err != nil {
			return all, err
		}
	}
	if others.cadvisor != "" {
		if err := add(armCadvisor, others.cadvisor, "-prefix", g.top); err != nil {
			return all, err
		}
		return all, add(armCadvisorCPU, others.cadvisor, "-prefix", g.top, "-only-cpu")
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
