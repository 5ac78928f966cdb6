package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/agent"
	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/container"
	"github.com/unthrottle/unthrottle/diagnose"
	"github.com/unthrottle/unthrottle/explain"
	"github.com/unthrottle/unthrottle/flight"
)

// flightDir is where below the state directory the agent's flight recorder keeps what it has.
const flightDir = "flight"

func defaultFlightDir() string { return filepath.Join(defaultStateDir(), flightDir) }

// explainPast explains a moment of the past: the recording nearest to it, else what the periods tell.
func explainPast(target string, f explainFlags) (diagnose.Explanation, error) {
	at, err := flight.Moment(f.at, time.Now())
	if err != nil {
		return diagnose.Explanation{}, fmt.Errorf("--at %s: %w", container.Sanitize(f.at, 60), err)
	}
	kept, damaged := flight.Load(f.flight)
	if damaged != nil {
		say("some of what the flight recorder kept cannot be read: %v", damaged)
	}
	who, err := pastTargets(target, kept)
	if err != nil {
		return diagnose.Explanation{}, err
	}
	recordings, err := flight.Store{Dir: agent.RecordingsDir(f.flight)}.List()
	if err != nil {
		return diagnose.Explanation{}, err
	}
	var ids []uint64
	for _, c := range who {
		ids = append(ids, c.ID)
	}
	if nearest, ok := flight.Nearest(recordings, at, ids...); ok {
		say("the recording of %s", nearest.At.Local().Format(time.DateTime))
		return explainFile(nearest.File)
	}
	for _, c := range who {
		if periods := kept.Periods(c.ID, at.Add(-explain.PeriodsAround), at.Add(explain.PeriodsAround)); len(periods) > 0 {
			return explain.FromPeriods(c, periods), nil
		}
	}
	return diagnose.Explanation{}, exitWith{exitNotMeasurable, fmt.Errorf(
		"nothing of %s is kept around %s in %s: the agent keeps the last hour of the %d containers that stood still most, and records those that stand still longer than its rules allow",
		container.Sanitize(target, 0), at.Local().Format(time.DateTime), container.Sanitize(f.flight, 0), flight.Slots)}
}

// pastTargets are the containers that target may mean: the one that runs under that name, and those of the flight
// recorder, which may be gone.
func pastTargets(target string, kept *flight.Recorder) ([]flight.Identity, error) {
	var found []flight.Identity
	for _, c := range kept.Containers() {
		if c.Name == target || c.Path == target {
			found = append(found, c)
		}
	}
	h, err := openCgroups()
	if err != nil {
		return found, err
	}
	c, _, err := resolve(h, target)
	switch {
	case err == nil:
		id, err := h.ID(cgroup.CPU, c.Group.Path)
		if err == nil && !slices.ContainsFunc(found, func(f flight.Identity) bool { return f.ID == id }) {
			found = append(found, flight.Identity{ID: id, Path: c.Group.Path, Name: c.Name})
		}
		return found, nil
	case len(found) > 0:
		return found, nil
	case errors.Is(err, os.ErrPermission):
		return nil, exitWith{exitNotMeasurable, err}
	}
	return nil, err
}
