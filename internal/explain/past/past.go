// Package past explains a moment that is over from what the agent's flight recorder
// kept.
//
// # Problem
//
// Throttling is noticed after the fact: at 03:12 latency was bad, and by now the
// container may be gone.
//
// # Rule
//
// The recording nearest to the moment answers; without one, the periods around it.
// A container is known by the name under which it runs now, or by the names that the
// flight recorder kept, also those in the headers of recordings.
//
// # Example
//
// For "cart" at 03:12, with a recording of cart from 03:12:04, that recording is
// explained. With periods alone, those from [live.PeriodsAround] before to as long
// after are.
//
// # Limits
//
// The recorder keeps the last hour of the [flightrecorder.Slots] containers that were
// stopped most.
package past

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Options of Explain.
type Options struct {
	// Dir is the flight recorder's folder, Recordings that of its recordings.
	Dir, Recordings string
	// Target names the container, At the moment.
	Target string
	At     time.Time
	// Running finds the container that runs under the target's name now.
	Running func() (flightrecorder.Identity, error)
	// Say is told what is shown, and what could not be read; nil: not wanted.
	Say func(text string)
}

// NothingKept says why nothing can be told of the moment.
type NothingKept struct{ Err error }

func (n *NothingKept) Error() string { return n.Err.Error() }

func (n *NothingKept) Unwrap() error { return n.Err }

// withZone is a moment as a user reads it, with the time zone that it is in.
const withZone = time.DateTime + " MST"

// Explain explains the moment. Errors: *NothingKept, those of Running, and those of
// files.
func Explain(ctx context.Context, o Options) (diagnose.Explanation, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	switch _, err := os.ReadDir(o.Dir); {
	case errors.Is(err, os.ErrNotExist):
		return diagnose.Explanation{}, &NothingKept{fmt.Errorf(
			"no flight recorder has kept anything in %s, since there is no such folder: start the agent, run as root "+
				"if root's agent records, or give its folder with --flight-dir",
			text.Sanitize(o.Dir, 0))}
	case errors.Is(err, os.ErrPermission):
		return diagnose.Explanation{}, &NothingKept{fmt.Errorf(
			"%w: what the flight recorder keeps is for root alone: run as root, or give another folder with --flight-dir", err)}
	}
	kept, damaged := flightrecorder.Load(o.Dir)
	if damaged != nil {
		o.Say(fmt.Sprintf("some of what the flight recorder kept cannot be read: %v", damaged))
	}
	recordings, err := flightrecorder.Store{Dir: o.Recordings}.List()
	if err != nil {
		return diagnose.Explanation{}, err
	}
	found, err := o.targets(append(kept.Containers(), recorded(recordings, o.At)...))
	if err != nil {
		return diagnose.Explanation{}, err
	}
	var keys []flightrecorder.Key
	for _, c := range found {
		keys = append(keys, c.Key())
	}
	if nearest, ok := flightrecorder.Nearest(recordings, o.At, keys...); ok {
		o.Say("the recording of " + nearest.At.Local().Format(withZone))
		return live.File(ctx, nearest.File)
	}
	for _, c := range found {
		if periods := kept.Periods(c.Key(), o.At.Add(-live.PeriodsAround), o.At.Add(live.PeriodsAround)); len(periods) > 0 {
			return live.FromPeriods(c, periods), nil
		}
	}
	return diagnose.Explanation{}, &NothingKept{fmt.Errorf(
		"no recording of %s near %s in %s: the agent keeps the last hour of the %d containers that were stopped "+
			"most, and records those that are stopped longer than its rules allow",
		text.Sanitize(o.Target, 0), o.At.Local().Format(withZone), text.Sanitize(o.Dir, 0), flightrecorder.Slots)}
}

// recorded are the containers of the recordings that are near enough to answer, as
// their headers name them: a container may be gone, its periods too. Each container comes
// once; a recording that cannot be read has no name.
func recorded(recordings []flightrecorder.Kept, at time.Time) []flightrecorder.Identity {
	var identities []flightrecorder.Identity
	for _, k := range recordings {
		if k.At.Sub(at).Abs() > flightrecorder.Near ||
			slices.ContainsFunc(identities, func(f flightrecorder.Identity) bool { return f.Key() == k.Key() }) {
			continue
		}
		if target, err := k.Target(); err == nil {
			identities = append(identities, flightrecorder.Identity{ID: k.ID, Boot: k.Boot, Path: target.Path, Name: target.Name})
		}
	}
	return identities
}

// targets are the containers that the target may mean: those known from the past,
// which may be gone, and the one that runs under that name. Where none runs, those
// from the past do.
func (o Options) targets(known []flightrecorder.Identity) ([]flightrecorder.Identity, error) {
	var found []flightrecorder.Identity
	add := func(c flightrecorder.Identity) {
		if !slices.ContainsFunc(found, func(f flightrecorder.Identity) bool { return f.Key() == c.Key() }) {
			found = append(found, c)
		}
	}
	for _, c := range known {
		if c.Name == o.Target || c.Path == o.Target {
			add(c)
		}
	}
	running, err := o.Running()
	switch {
	case err == nil:
		add(running)
	case len(found) == 0:
		return nil, err
	}
	return found, nil
}
