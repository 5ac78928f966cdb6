package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/past"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// flightDir is the folder of the agent's flight recorder below the state directory.
const flightDir = "flight"

func defaultFlightDir() string { return filepath.Join(defaultStateDir(), flightDir) }

// explainPast explains a moment of the past from the agent's flight recorder.
func explainPast(ctx context.Context, target string, f explainFlags) (diagnose.Explanation, error) {
	at, err := flightrecorder.Moment(f.at, time.Now())
	if err != nil {
		return diagnose.Explanation{}, fmt.Errorf("--at %s: %w", text.Sanitize(f.at, 60), err)
	}
	e, err := past.Explain(ctx, past.Options{
		Dir: f.flight, Recordings: agent.RecordingsDir(f.flight), Target: target, At: at,
		Running: func() (flightrecorder.Identity, error) { return running(target) },
		Say:     func(text string) { say("%s", text) },
	})
	if nothing := new(past.NothingKept); errors.As(err, &nothing) || errors.Is(err, os.ErrPermission) {
		err = exitWith{exitNotMeasurable, err}
	}
	return e, err
}

// running is the container that runs under a name now.
func running(target string) (flightrecorder.Identity, error) {
	h, err := openCgroups()
	if err != nil {
		return flightrecorder.Identity{}, err
	}
	c, _, err := resolve(h, target)
	if err != nil {
		return flightrecorder.Identity{}, err
	}
	boot, err := apply.BootID("/proc")
	if err != nil {
		return flightrecorder.Identity{}, err
	}
	id, err := h.ID(cgroup.CPU, c.Group.Path)
	return flightrecorder.Identity{ID: id, Boot: boot, Path: c.Group.Path, Name: c.Name}, err
}
