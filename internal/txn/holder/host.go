package holder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/widthcap"
	"github.com/unthrottle/unthrottle/internal/widthcap/scx"
)

// PinDir is where the scheduler's maps are pinned.
const PinDir = "/sys/fs/bpf/unthrottle"

// caps are the caps of a scheduler that runs.
type caps interface {
	Set(cgroup uint64, c scx.Cap) error
	Remove(cgroup uint64) error
	All() (map[uint64]scx.Cap, error)
	Stats(cgroup uint64) (scx.Stats, error)
	Close() error
}

// Host is the caps of this host's cgroups. It implements widthcap.FS.
type Host struct {
	// StateDir has the holder's note and lock.
	StateDir string

	open  func() (caps, error)
	start func() error
}

// New returns the caps of this host, for a state directory.
func New(stateDir string) *Host {
	h := &Host{StateDir: stateDir}
	h.open = func() (caps, error) { return scx.Open(PinDir) }
	h.start = h.startHolder
	return h
}

// with calls do with the caps of the running scheduler; false: none runs.
func (h *Host) with(do func(caps) error) (bool, error) {
	c, err := h.open()
	switch unavailable := new(scx.Unavailable); {
	case errors.Is(err, scx.ErrNotEnabled), errors.As(err, &unavailable):
		return false, nil
	case err != nil:
		return false, err
	}
	defer c.Close()
	return true, do(c)
}

// Read implements widthcap.FS.
func (h *Host) Read(cgroup uint64) (found widthcap.Cap, ok bool, err error) {
	_, err = h.with(func(c caps) error {
		all, err := c.All()
		of, has := all[cgroup]
		found, ok = widthcap.Cap(of), has
		return err
	})
	return found, ok && err == nil, err
}

// Write implements widthcap.FS. Where no scheduler of ours runs it starts one.
func (h *Host) Write(cgroup uint64, to widthcap.Cap) error {
	unlock, err := h.lock()
	if err != nil {
		return err
	}
	defer unlock()
	set := func(c caps) error { return c.Set(cgroup, scx.Cap(to)) }
	if runs, err := h.with(set); runs || err != nil {
		return err
	}
	started := h.start()
	runs, err := h.with(set) // also where another command started one just now
	switch {
	case runs || err != nil:
		return err
	case started != nil:
		return fmt.Errorf("%w: %w", widthcap.ErrUnavailable, started)
	}
	return fmt.Errorf("%w: the scheduler was loaded and does not run; dmesg may say why", widthcap.ErrUnavailable)
}

// Remove implements widthcap.FS.
func (h *Host) Remove(cgroup uint64) error {
	_, err := h.with(func(c caps) error { return c.Remove(cgroup) })
	if errors.Is(err, scx.ErrNoCap) {
		return nil
	}
	return err
}

// Counts implements widthcap.FS.
func (h *Host) Counts(cgroup uint64) (counts widthcap.Counts, ok bool, err error) {
	_, err = h.with(func(c caps) error {
		s, err := c.Stats(cgroup)
		if errors.Is(err, scx.ErrNoCap) {
			return nil
		}
		counts = widthcap.Counts{Widest: s.Widest, Now: s.Now, Credit: s.Credit, AtCap: s.AtCap, Waited: s.Waited,
			Cut: s.Cut, Faults: s.Faults}
		ok = err == nil
		return err
	})
	return counts, ok, err
}

// lock keeps the holder from ending until unlock.
func (h *Host) lock() (unlock func(), err error) {
	return lockDir(h.StateDir, unix.LOCK_EX)
}

// lockDir takes the lock of a state directory; how is one of flock(2).
func lockDir(stateDir string, how int) (unlock func(), err error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(stateDir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), how); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return func() { file.Close() }, nil
}
