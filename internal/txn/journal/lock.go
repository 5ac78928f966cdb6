package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/text"
)

// lockName is the lock file inside the state directory. It is never removed: a lock on an unlinked file
// protects nothing.
const lockName = "lock"

// DefaultWait is how long a second writer waits.
const DefaultWait = 5 * time.Second

// lockPoll is how often a waiting writer looks again. flock(2) can block, but not for a bounded time.
const lockPoll = 25 * time.Millisecond

// Locked says that another writer is at work.
type Locked struct {
	StateDir string
	// PID is the writer's, 0 if it could not be read.
	PID int
	// Waited is how long we waited for it.
	Waited time.Duration
}

// Error names the other process and the way out.
func (e *Locked) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("state directory %s: %s has been writing for %s; wait until it ends, or use another --state-dir",
		e.StateDir, who, text.Duration(e.Waited))
}

// takeLock locks the state directory for this open file. The kernel drops the lock when the holder ends, however it
// ends, so a dead process never blocks.
func takeLock(ctx context.Context, stateDir string, wait time.Duration) (*os.File, error) {
	name := filepath.Join(stateDir, lockName)
	f, err := openRegular(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := waitForLock(ctx, f, wait); err != nil {
		pid := lockedBy(f)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &Locked{StateDir: stateDir, PID: pid, Waited: wait}
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	if err := named(f); err != nil { // removed while we waited for it, by hand
		f.Close()
		return nil, fmt.Errorf("lock: %w", err)
	}
	// The PID is for people only; failing to write it (a full disk) must not keep restore from working.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

func waitForLock(ctx context.Context, f *os.File, wait time.Duration) error {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return unix.EWOULDBLOCK
		case <-poll.C:
		}
	}
}

func lockedBy(f *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
