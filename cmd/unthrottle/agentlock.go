package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// agentLock is the file below the state directory that the running agent holds locked. It has the agent's process id.
const agentLock = "agent.lock"

// aloneIn refuses a second agent of one state directory: they would remove each other's recordings. Where the file cannot be
// made nothing can be kept either, and the agent goes on.
func aloneIn(stateDir string) (release func(), err error) {
	release = func() {}
	if journal.CheckStateDir(stateDir) != nil || os.MkdirAll(stateDir, 0o700) != nil {
		return release, nil
	}
	file, err := os.OpenFile(filepath.Join(stateDir, agentLock), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return release, nil
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return release, nil
		}
		id, _ := io.ReadAll(io.LimitReader(file, 20))
		return release, fmt.Errorf("state directory %s: another agent runs with it (process %s): stop that one, or "+
			"give this one a --state-dir of its own",
			text.Sanitize(stateDir, 0), text.Sanitize(strings.TrimSpace(string(id)), 20))
	}
	_ = file.Truncate(0) // the id is for people
	_, _ = file.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return func() { _ = file.Close() }, nil
}
