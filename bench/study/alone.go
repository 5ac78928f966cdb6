package study

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/clock"
)

// Alone is a file that whoever needs the machine for itself holds locked, by flock(2). A study locks it while it measures and gives it
// back between two measurements; a build is started by `flock FILE COMMAND`. So each waits for the other, and none runs beside it.
// The zero value is no file: nobody waits.
type Alone struct{ file *os.File }

// givenFor is how long others have to take the lock. flock(2) has no queue: who gives it back and asks at once would get it again.
const givenFor = 100 * time.Millisecond

// OpenAlone opens the file, which need not be there; "": none.
func OpenAlone(name string) (Alone, error) {
	if name == "" {
		return Alone{}, nil
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return Alone{}, fmt.Errorf("the file that is locked while it measures: %w", err)
	}
	return Alone{file}, nil
}

// Do does something while the lock is held. An error of ctx says that it did not.
func (a Alone) Do(ctx context.Context, measure func() error) (err error) {
	if a.file == nil {
		return measure()
	}
	if err := a.lock(ctx); err != nil {
		return err
	}
	defer func() {
		if unlocked := a.flock(unix.LOCK_UN); err == nil {
			err = unlocked
		}
		_ = clock.Sleep(ctx, givenFor) // an interrupt ends the next measurement
	}()
	return measure()
}

// lock waits as those do who start `flock FILE COMMAND`: who asks from time to time never gets what others wait for. Nothing ends a wait for flock(2), so
// that one which nobody needs any more goes on, and gives the lock back.
func (a Alone) lock(ctx context.Context) error {
	locked := make(chan error, 1)
	go func() { locked <- a.flock(unix.LOCK_EX) }()
	select {
	case err := <-locked:
		return err
	case <-ctx.Done():
		go func() {
			if <-locked == nil {
				_ = a.flock(unix.LOCK_UN) // the end of the process does it too
			}
		}()
		return ctx.Err()
	}
}

func (a Alone) flock(how int) error {
	for {
		if err := unix.Flock(int(a.file.Fd()), how); err == nil {
			return nil
		} else if err != unix.EINTR {
			return fmt.Errorf("lock or unlock %s: %w", a.file.Name(), err)
		}
	}
}
