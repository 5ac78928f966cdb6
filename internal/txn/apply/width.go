package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/widthcap"
)

// errNoWidth: a cap is to be touched and there is nothing to do it with.
var errNoWidth = errors.New("the width of cgroups cannot be capped here")

// width is the cap of a cgroup's width in the sched_ext scheduler.
type width struct{ inCgroup }

func (width) normalise(c change.Change) (change.Change, error) {
	if c.File != widthcap.File || c.Path == "" {
		return c, fmt.Errorf("%.80q of cgroup %q is no cap of a width", c.File, c.Path)
	}
	if c.Op != change.OpSet {
		return c, fmt.Errorf("cgroup %q: a cap of a width can be set only", c.Path)
	}
	c.Controller = cgroup.CPU
	return c, nil
}

// possible refuses a cap that no scheduler takes.
func (w width) possible(_ context.Context, c change.Change) error {
	if w.Width == nil {
		return fmt.Errorf("%s: %w", c.Key(), errNoWidth)
	}
	if _, err := widthcap.Parse(c.To); err != nil {
		return fmt.Errorf("%s: %w", c.Key(), err)
	}
	return nil
}

// read is the cap in force, "" if there is none or no scheduler runs.
func (w width) read(_ context.Context, k change.Key) (string, error) {
	if w.Width == nil {
		return "", fmt.Errorf("%s: %w", k, errNoWidth)
	}
	id, err := w.FS.ID(cgroup.CPU, k.Path)
	if err != nil {
		return "", err
	}
	c, ok, err := w.Width.Read(id)
	if err != nil || !ok {
		return "", err
	}
	return c.String(), nil
}

// write sets a cap, or ends it.
func (w width) write(_ context.Context, c change.Change) error {
	if w.Width == nil {
		return fmt.Errorf("%s: %w", c.Key(), errNoWidth)
	}
	id, err := w.FS.ID(cgroup.CPU, c.Path)
	if err != nil {
		return err
	}
	if c.To == "" {
		err = w.Width.Remove(id)
	} else {
		var to widthcap.Cap
		if to, err = widthcap.Parse(c.To); err == nil {
			err = w.Width.Write(id, to)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Key(), err)
	}
	return nil
}

func (width) traits() traits { return traits{valued: true, stale: true} }
