package live

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

const (
	// lookEvery is how often a recording checks that its target still exists.
	lookEvery = 200 * time.Millisecond
	// emptyFor is how long a target may be without any process, as between the end of one and the start of
	// the next.
	emptyFor = time.Second
)

// whileItLasts returns a context that ends with ctx, or as soon as the target has ended. The caller must call
// over, which says how the target ended, or "" if it has not.
func (o Options) whileItLasts(ctx context.Context) (within context.Context, over func() string) {
	within, end := context.WithCancel(ctx)
	why := make(chan string, 1)
	go func() {
		defer end()
		why <- o.awaitEnd(within)
	}()
	return within, func() string {
		end()
		return <-why
	}
}

// awaitEnd waits for the end of the target or of ctx. If the target has no process from the beginning, it
// first waits for one.
func (o Options) awaitEnd(ctx context.Context) string {
	id, err := o.Host.ID(cgroup.CPU, o.Target.Group.Path)
	if err != nil {
		return "" // the recording itself reports this
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var lived bool
	var empty time.Time
	for {
		switch now, err := o.Host.ID(cgroup.CPU, o.Target.Group.Path); {
		case errors.Is(err, cgroup.ErrNoCgroup), err == nil && now != id:
			return "its cgroup was removed"
		case o.populated():
			lived, empty = true, time.Time{}
		case lived && empty.IsZero():
			empty = time.Now()
		case lived && time.Since(empty) >= emptyFor:
			return "all its processes have ended"
		}
		select {
		case <-ctx.Done():
			return ""
		case <-tick.C:
		}
	}
}

// populated reports whether the target or a descendant has any process. An unreadable file counts as
// populated.
func (o Options) populated() bool {
	found := false
	err := o.Host.Walk(o.Target.Group.Path, func(path string) error {
		pids, err := o.Host.Members(path)
		if errors.Is(err, cgroup.ErrNoCgroup) {
			return nil
		}
		if err != nil || len(pids) > 0 {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found || err != nil && !errors.Is(err, cgroup.ErrNoCgroup)
}
