package observe

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// notifier learns of new cgroups from inotify. It only ever says "something was made, look again": a queue that ran
// over, or a watch that could not be set, costs time until the next full rescan and nothing else. It has no goroutine:
// made asks the kernel without waiting.
type notifier struct {
	fd      int // -1: there is no inotify
	watches int // those that the kernel has not told us to be gone
	max     int
	buf     [16 << 10]byte
}

// maxWatches bounds the watches; each costs the kernel about 1 KiB.
const maxWatches = 16 << 10

// newNotifier never fails: without inotify there are the rescans.
func newNotifier() (*notifier, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return &notifier{fd: -1}, fmt.Errorf("inotify: %w; new cgroups show at the next rescan", err)
	}
	return &notifier{fd: fd, max: maxWatches}, nil
}

// errWatchesFull: at one of the limits, ours or fs.inotify.max_user_watches.
var errWatchesFull = errors.New("no more inotify watches; cgroups made in unwatched ones show at the next rescan")

// watch sets a watch on every cgroup below scope; on those that have one the kernel keeps it.
func (n *notifier) watch(h *cgroup.Host, scope string) error {
	if n.fd < 0 {
		return nil
	}
	n.watches = 0
	return h.Walk(scope, func(path string) error {
		if n.watches == n.max {
			return errWatchesFull
		}
		_, err := unix.InotifyAddWatch(n.fd, h.Dir(cgroup.CPU, path), unix.IN_CREATE|unix.IN_ONLYDIR)
		switch {
		case errors.Is(err, unix.ENOSPC):
			return errWatchesFull
		case errors.Is(err, unix.ENOENT):
			return nil
		case err != nil:
			return err
		}
		n.watches++
		return nil
	})
}

// made tells whether cgroups were made since it was last asked, or may have been.
func (n *notifier) made() bool {
	if n.fd < 0 {
		return false
	}
	found := false
	for {
		size, err := unix.Read(n.fd, n.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || size <= 0 {
			return found
		}
		found = found || tellsOfDirectories(n.buf[:size])
	}
}

// tellsOfDirectories walks through inotify events (inotify(7)): watch, mask, cookie, length of the name, name. What is
// cut off counts as yes.
func tellsOfDirectories(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		mask, length := binary.NativeEndian.Uint32(events[4:]), binary.NativeEndian.Uint32(events[12:])
		if mask&unix.IN_Q_OVERFLOW != 0 || mask&unix.IN_CREATE != 0 && mask&unix.IN_ISDIR != 0 {
			return true
		}
		size := unix.SizeofInotifyEvent + int(length)
		if size > len(events) {
			return true
		}
		events = events[size:]
	}
	return false
}

func (n *notifier) close() {
	if n.fd >= 0 {
		unix.Close(n.fd)
		n.fd = -1
	}
}
