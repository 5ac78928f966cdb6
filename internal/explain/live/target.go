package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

// MinRecording is the shortest recording that says anything: two periods of 100 ms.
const MinRecording = 200 * time.Millisecond

// TooShort says that a recording was interrupted before it said anything.
type TooShort struct{ After time.Duration }

func (s *TooShort) Error() string {
	if s.After <= 0 {
		return "interrupted before anything was recorded"
	}
	return fmt.Sprintf("interrupted after %s of recording, which says nothing: at least %s are needed",
		text.Duration(s.After), text.Duration(MinRecording))
}

// LongEnough refuses an explanation of less than MinRecording: *Gone where the target
// ended, *TooShort where the user interrupted it.
func LongEnough(e diagnose.Explanation, name string, interrupted bool) error {
	switch {
	case e.Window >= MinRecording:
		return nil
	case e.EndedEarly != "":
		return &Gone{Name: name, Err: fmt.Errorf("%s after %s of recording, which says nothing: at least %s are needed",
			e.EndedEarly, text.Duration(e.Window), text.Duration(MinRecording))}
	case interrupted:
		return &TooShort{e.Window}
	}
	return nil
}

// Others are the containers that are told apart as neighbours of a target: not the
// target, and none above or below it.
func Others(target container.Container, containers []container.Container) []container.Container {
	var others []container.Container
	for _, other := range containers {
		if !cgroup.Below(other.Group.Path, target.Group.Path) && !cgroup.Below(target.Group.Path, other.Group.Path) {
			others = append(others, other)
		}
	}
	return others
}

// File explains the recording in a file. Reading ends with ctx.
func File(ctx context.Context, name string) (diagnose.Explanation, error) {
	file, err := infile.Open(ctx, name)
	if err != nil {
		return diagnose.Explanation{}, err
	}
	defer file.Close()
	e, err := Recording(file)
	return e, Named(name, err)
}

// Named names the recording in an error about it; of nil, nil.
func Named(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, recording.ErrNotARecording):
		return fmt.Errorf("%s: %w; if a container of that name is meant, name it by its path or id", text.Sanitize(name, 0), err)
	}
	return fmt.Errorf("%s: %w", text.Sanitize(name, 0), err)
}
