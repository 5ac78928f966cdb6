package observe

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// notifier learns of new cgroups from inotify. It only reports that a cgroup may be new. After a queue overflow or a
// failed watch, a new cgroup shows at the next full rescan and nothing else is lost. It has no goroutine: created asks
// the kernel without waiting.
type notifier struct {
	fd      int // -1 without inotify
	watches int // those that the kernel has not reported as removed
	max     int
	buf     [16 << 10]byte
}

// maxWatches bounds the watches; each costs the kernel about 1 KiB.
const maxWatches = 16 << 10

// newNotifier returns a usable notifier with every error: without inotify, rescans alone find new cgroups.
func newNotifier() (*notifier, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return &notifier{fd: -1}, fmt.Errorf("inotify: %w; new cgroups show at the next rescan", err)
	}
	return &notifier{fd: fd, max: maxWatches}, nil
}

// errWatchesFull reports one of the two limits: maxWatches or fs.inotify.max_user_watches.
var errWatchesFull = errors.New("no more inotify watches; cgroups made in unwatched ones show at the next rescan")

// watch sets a watch on every cgroup below scope. The kernel keeps watches that exist.
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

// created reports whether a cgroup was made, or may have been made, since the last call.
func (n *notifier) created() bool {
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
		found = found || reportsDirectory(n.buf[:size])
	}
}

// reportsDirectory walks through inotify events (inotify(7)): watch, mask, cookie, length of the name, name. A
// truncated event counts as yes.
func reportsDirectory(events []byte) bool {
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
