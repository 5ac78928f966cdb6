package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/study"
)

// fixFigures are what `unthrottle fix --yes` came to, run as a user would while the service has its load. It is read from its JSON.
type fixFigures struct {
	Load    float64  `json:"load_rps"`
	Seconds float64  `json:"seconds"` // that it took
	Remedy  string   `json:"remedy"`
	Why     string   `json:"why"`
	Kept    bool     `json:"kept"`
	Tries   []fixTry `json:"tries"`
	// Judgement is of the last try; nil: nothing was tried.
	Judgement *verdict.Judgement `json:"judgement"`
}

// judged says from what to what the judged quantile of the pool's threads went, with its unit.
func judged(j *verdict.Judgement) (before, after string) {
	unit := " ms"
	if j.PerCPU {
		unit = " times its CPU time"
	}
	return study.Decimals(&j.Before.Value, 1) + unit, study.Decimals(&j.After.Value, 1) + unit
}

// fixTry is a remedy that it tried.
type fixTry struct {
	Remedy     string            `json:"remedy"`
	Parameters map[string]string `json:"parameters"`
	Verdict    string            `json:"verdict"`
	Kept       bool              `json:"kept"`
}

// toolPath is the program in the guest.
const toolPath = "/lab/wide/unthrottle"

// fixSeconds bounds a run of fix: a look of a minute at most, and three tries.
const fixSeconds = 150

func fixedOf(h host, shape string, level, repeat int) piece {
	p := pointOf(h, shape, capacity.Quota, level, repeat)
	p.Kind, p.Seconds = fixed, fixSeconds
	return p
}

// measureFix runs fix beside a service under the plain quota, and ends the load with it.
func measureFix(ctx context.Context, host *cgroup.Host, p piece) (f *fixFigures, err error) {
	bed, err := capacity.OpenPoints(capacity.Options{Host: host}, p.Limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	at := capacity.At{Shape: p.Shape, Remedy: capacity.Quota, Share: p.Share,
		For: time.Duration(p.Seconds * float64(time.Second)), Seed: uint64(p.Repeat)}
	load, err := bed.Load(at)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	var failed error
	_, err = bed.Measure(ctx, at, nil, func(ctx context.Context, group cgroup.Group) error {
		defer end()
		began := time.Now()
		if f, failed = runFix(ctx, group.Path); failed == nil {
			f.Load, f.Seconds = load, time.Since(began).Seconds()
		}
		return failed
	})
	if failed == nil && f != nil {
		return f, nil // the load was ended by fix's end
	}
	return nil, cmp.Or(failed, err)
}

// runFix runs fix on a cgroup. Its exit code 1 says that the container is still stopped: that is a figure, no failure.
func runFix(ctx context.Context, path string) (*fixFigures, error) {
	cmd := exec.CommandContext(ctx, toolPath, "fix", path, "--yes", "--output", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	var f fixFigures
	if bad := json.Unmarshal(out, &f); bad != nil {
		return nil, fmt.Errorf("fix: %w: %.600s", cmp.Or(err, bad), words.String())
	}
	return &f, nil
}

// left is what fix left in force; nil: nothing.
func (f *fixFigures) left() *fixTry {
	for i := range f.Tries {
		if f.Tries[i].Kept {
			return &f.Tries[i]
		}
	}
	return nil
}

func (t fixTry) String() string {
	text := t.Remedy
	for _, name := range []string{"to", "burst", "period", "cap", "cpus"} {
		switch v := t.Parameters[name]; {
		case v == "":
		case name == t.Remedy:
			text += " " + v
		case name == "cap": // of narrow by sched_ext
			text += " to " + v
		default:
			text += ", " + name + " " + v
		}
	}
	return text
}
