package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// leftBy is what a fix left in force, in words.
func leftBy(f fix.Result) string {
	if f.Trial != nil && f.Trial.Kept != nil {
		return *f.Trial.Kept
	}
	for _, t := range f.Tries {
		if t.Kept {
			return t.Remedy
		}
	}
	return "as it was: " + f.Verdict
}

// byTool runs this project's program under the usual load, on each container in turn.
func (r *running) byTool(ctx context.Context, p *piece) error {
	stop, err := r.usualLoad(ctx)
	if err != nil {
		return err
	}
	defer stop()
	began := time.Now()
	var sets []string
	for _, h := range r.containers {
		tool := r.tool()
		tool.Target = h.group.At().Path
		if len(r.v.apply) > 0 {
			refused, err := tool.Apply(ctx, r.v.apply)
			if err != nil {
				return err
			}
			if refused != "" {
				p.NotApplied = refused
				return nil
			}
			sets = append(sets, "the limit, "+strings.Join(r.v.apply[1:], " "))
			continue
		}
		out, err := tool.Run(ctx, tool.Changing("fix", tool.Target, "--yes", "--json")...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var f fix.Result
		if unread := json.Unmarshal(out, &f); unread != nil { // exit code 1 alone: it is still stopped
			return errors.Join(err, fmt.Errorf("fix --json: %w", unread))
		}
		sets = append(sets, leftBy(f))
		p.Decided = new(time.Since(began).Seconds())
	}
	r.set = strings.Join(sets, "; ")
	return r.readLimits()
}

// readLimits takes over what this project's program put in force.
func (r *running) readLimits() error {
	for _, h := range r.containers {
		limit, err := cgroup.ReadLimit(r.host, h.group.At().Path)
		if err != nil {
			return err
		}
		h.now.Limit = limit
		r.v.period = max(r.v.period, limit.Period)
	}
	return nil
}

// usualLoad runs the client at the usual load until stop is called.
func (r *running) usualLoad(ctx context.Context) (stop func(), err error) {
	const longest = time.Hour
	_, stop, err = services.StartClient(ctx, r.order(1, longest))
	return stop, err
}

// agentRules let the agent try remedies in turns on every container of the stage.
const agentRules = `version: 1
mode: apply
scope: %s
listen: 127.0.0.1:0
startup: 1s
rules:
- match: {cgroup: "%s/**"}
  remedy: auto
  verify: probe
  trial: {most: 2m, per: 24h}
`

// byAgent runs the agent, which chooses and decides by itself, and goes on beside the steps.
func (r *running) byAgent(ctx context.Context, p *piece) (stop func() error, err error) {
	stop = func() error { return nil }
	config := filepath.Join(r.s.Dir, "agent.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, agentRules, r.s.Scope(), r.s.Scope()), 0o600); err != nil {
		return stop, err
	}
	idle, err := r.usualLoad(ctx)
	if err != nil {
		return stop, err
	}
	defer idle()
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := r.tool().Run(running, "agent", "--config", config, "--state-dir", r.tool().State(), "--nri", "off")
		if running.Err() != nil {
			err = nil // it was told to end
		}
		ended <- err
	}()
	stop = func() error { end(); return <-ended }
	began := time.Now()
	for deadline := began.Add(r.v.decides(r.c)); time.Now().Before(deadline); {
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return stop, errors.Join(err, stop())
		}
		select {
		case err := <-ended:
			end()
			return func() error { return nil }, errors.Join(errors.New("the agent ended"), err)
		default:
		}
		changed, err := r.limitsChanged()
		if err != nil {
			return stop, errors.Join(err, stop())
		}
		if changed {
			p.Decided = new(time.Since(began).Seconds())
		}
	}
	r.set = ""
	return stop, nil
}

// limitsChanged reads the limits and tells whether one is another than before.
func (r *running) limitsChanged() (changed bool, err error) {
	before := make([]bandwidth.Limit, len(r.containers))
	for i, h := range r.containers {
		before[i] = h.now.Limit
	}
	if err := r.readLimits(); err != nil {
		return false, err
	}
	for i, h := range r.containers {
		changed = changed || h.now.Limit != before[i]
	}
	return changed, nil
}
