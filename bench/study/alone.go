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

// lockPoll is how often a study asks. flock(2) can block, but not until a context ends.
const lockPoll = 20 * time.Millisecond

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
	for {
		err := unix.Flock(int(a.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			return fmt.Errorf("lock %s: %w", a.file.Name(), err)
		}
		if err := clock.Sleep(ctx, lockPoll); err != nil {
			return err
		}
	}
	defer func() {
		if unlocked := unix.Flock(int(a.file.Fd()), unix.LOCK_UN); unlocked != nil && err == nil {
			err = fmt.Errorf("unlock %s: %w", a.file.Name(), unlocked)
		}
		_ = clock.Sleep(ctx, givenFor) // an interrupt ends the next measurement
	}()
	return measure()
}
