package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/agent"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

// flightDir is where below the state directory the agent's flight recorder keeps what it has.
const flightDir = "flight"

func defaultFlightDir() string { return filepath.Join(defaultStateDir(), flightDir) }

// explainPast explains a moment of the past: the recording nearest to it, else what the periods tell.
func explainPast(target string, f explainFlags) (diagnose.Explanation, error) {
	at, err := flightrecorder.Moment(f.at, time.Now())
	if err != nil {
		return diagnose.Explanation{}, fmt.Errorf("--at %s: %w", text.Sanitize(f.at, 60), err)
	}
	if _, err := os.ReadDir(f.flight); errors.Is(err, os.ErrPermission) {
		return diagnose.Explanation{}, exitWith{exitNotMeasurable, fmt.Errorf(
			"%w: what the flight recorder keeps is for root alone: run as root, or give another folder with --flight-dir", err)}
	}
	kept, damaged := flightrecorder.Load(f.flight)
	if damaged != nil {
		say("some of what the flight recorder kept cannot be read: %v", damaged)
	}
	recordings, err := flightrecorder.Store{Dir: agent.RecordingsDir(f.flight)}.List()
	if err != nil {
		return diagnose.Explanation{}, err
	}
	known := append(kept.Containers(), recorded(recordings, at)...)
	who, err := pastTargets(target, known)
	if err != nil {
		return diagnose.Explanation{}, err
	}
	var ids []uint64
	for _, c := range who {
		ids = append(ids, c.ID)
	}
	if nearest, ok := flightrecorder.Nearest(recordings, at, ids...); ok {
		say("the recording of %s", nearest.At.Local().Format(time.DateTime))
		return explainFile(nearest.File)
	}
	for _, c := range who {
		if periods := kept.Periods(c.ID, at.Add(-live.PeriodsAround), at.Add(live.PeriodsAround)); len(periods) > 0 {
			return live.FromPeriods(c, periods), nil
		}
	}
	return diagnose.Explanation{}, exitWith{exitNotMeasurable, fmt.Errorf(
		"nothing of %s is kept around %s in %s: the agent keeps the last hour of the %d containers that stood still most, and records those that stand still longer than its rules allow",
		text.Sanitize(target, 0), at.Local().Format(time.DateTime), text.Sanitize(f.flight, 0), flightrecorder.Slots)}
}

// recorded are the containers of the recordings that are near enough to answer, by what their headers say: a container
// may be gone, its periods too. Each id once; what cannot be read has no name.
func recorded(recordings []flightrecorder.Kept, at time.Time) []flightrecorder.Identity {
	var all []flightrecorder.Identity
	for _, k := range recordings {
		if k.At.Sub(at).Abs() > flightrecorder.Near || slices.ContainsFunc(all, func(f flightrecorder.Identity) bool { return f.ID == k.ID }) {
			continue
		}
		if target, err := recordingTarget(k.File); err == nil {
			all = append(all, flightrecorder.Identity{ID: k.ID, Path: target.Path, Name: target.Name})
		}
	}
	return all
}

func recordingTarget(name string) (recording.Target, error) {
	file, err := os.Open(name)
	if err != nil {
		return recording.Target{}, err
	}
	defer file.Close()
	in, err := recording.NewReader(file)
	if err != nil {
		return recording.Target{}, err
	}
	return in.Header.Target, nil
}

// pastTargets are the containers that target may mean: the one that runs under that name, and those known from the
// past, which may be gone.
func pastTargets(target string, known []flightrecorder.Identity) ([]flightrecorder.Identity, error) {
	var found []flightrecorder.Identity
	for _, c := range known {
		if (c.Name == target || c.Path == target) && !slices.ContainsFunc(found, func(f flightrecorder.Identity) bool { return f.ID == c.ID }) {
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
		if err == nil && !slices.ContainsFunc(found, func(f flightrecorder.Identity) bool { return f.ID == id }) {
			found = append(found, flightrecorder.Identity{ID: id, Path: c.Group.Path, Name: c.Name})
		}
		return found, nil
	case len(found) > 0:
		return found, nil
	case errors.Is(err, os.ErrPermission):
		return nil, exitWith{exitNotMeasurable, err}
	}
	return nil, err
}
