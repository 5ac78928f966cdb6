// Package learn records a container on this host for package fix, explains the recording and reads it for replays.
//
// Problem: a choice between remedies needs the exact schedule, which only a recording has.
//
// Rule: the recording goes to a temporary file without a name, which is gone when [Host.Learn] returns. Where the kernel refuses to
// record, or the recording cannot be replayed, the reason is in [fix.Learned].Missing, and no error is returned.
package learn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	events "github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Host is what is recorded.
type Host struct {
	Cgroups *cgroup.Host
	// Root is the host's file system ("/").
	Root fs.FS
	// All are the containers that may be named as neighbours.
	All []container.Container
	// Probe records, and stays open from one recording to the next; nil: one for each.
	Probe *probe.Kept
	// Doing is called with each step before a recording begins, Began when it begins; nil: no call.
	Doing func(what string)
	Began func()
}

// Learn records a container for that long. The errors are those of the temporary file, and the end of ctx.
func (h Host) Learn(ctx context.Context, target container.Container, length time.Duration) (fix.Learned, error) {
	learned, _, err := h.LearnUntil(ctx, target, length, 0)
	return learned, err
}

// LearnUntil is Learn, but ends when a request of a client takes longer than a bound, where that is above 0: late is
// how long it took; 0: none did.
func (h Host) LearnUntil(ctx context.Context, target container.Container, length,
	bound time.Duration) (learned fix.Learned, late time.Duration, err error) {
	recording, end := context.WithCancel(ctx)
	defer end()
	watch := requests.NewLate(bound)
	learned, err = h.learn(ctx, recording, target, length, func(e *events.Event) {
		if late == 0 {
			if late = watch.Add(e); late > 0 {
				end()
			}
		}
	})
	learned.Longest = watch.Longest()
	return learned, late, err
}

// learn records until recording ends; the end of ctx is an error.
func (h Host) learn(ctx, recording context.Context, target container.Container, length time.Duration,
	event func(*events.Event)) (fix.Learned, error) {
	file, err := os.CreateTemp("", "unthrottle-recording-")
	if err != nil {
		return fix.Learned{}, fmt.Errorf("no room for the recording: %w", err)
	}
	defer file.Close()
	// The file has no name from here on, so that a kill leaves nothing behind.
	if err := os.Remove(file.Name()); err != nil {
		return fix.Learned{}, fmt.Errorf("the temporary recording cannot be unlinked: %w", err)
	}
	explanation, err := live.Live(recording, live.Options{
		Host: h.Cgroups, Root: h.Root, Target: target, Others: live.Others(target, h.All), For: length, Keep: file,
		Doing: h.Doing, Began: h.Began, Event: event, Probe: h.Probe,
	})
	if ctx.Err() != nil {
		return fix.Learned{}, ctx.Err()
	}
	learned := fix.Learned{}
	if err == nil || errors.As(err, new(*live.NotKept)) {
		learned.Explanation = &explanation
	}
	if err != nil {
		learned.Missing = err.Error()
		return learned, nil
	}
	replayable(file, &learned)
	return learned, nil
}

// File reads a recording that was kept in a file.
func File(ctx context.Context, name string) (fix.Learned, error) {
	explanation, err := live.File(ctx, name)
	if err != nil {
		return fix.Learned{}, err
	}
	file, err := infile.Open(ctx, name)
	if err != nil {
		return fix.Learned{}, err
	}
	defer file.Close()
	learned := fix.Learned{Explanation: &explanation}
	replayable(file, &learned)
	return learned, nil
}

// replayable reads a recording for replays, or says why it cannot be replayed.
func replayable(file io.ReadSeeker, learned *fix.Learned) {
	_, err := file.Seek(0, io.SeekStart)
	if err == nil {
		learned.Load, learned.Runs, err = forecast.ReadWithRuns(file)
	}
	if err != nil {
		learned.Missing = err.Error()
	}
}
