package observe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// notifier learns from inotify of new and removed cgroups, and of writes to their settings. It only reports that there
// may be one. After a queue overflow or a failed watch, a new cgroup shows at the next full rescan and nothing else is
// lost. It has no goroutine: events asks the kernel without waiting.
type notifier struct {
	fd      int // -1 without inotify
	watches int // those that the kernel has not reported as removed
	max     int
	// whole reports that every cgroup below the scope is watched, so that no event means no write.
	whole bool
	paths map[int32]string // of the watches
	buf   [16 << 10]byte
}

// events is what happened since the last look.
type events struct {
	made    bool // a cgroup was made, or may have been made
	written bool // a cgroup was removed or its settings were written, or may have been
	// entered are cgroups into which a process was written, at most maxEntered; watches are their watches.
	entered []string
	watches []int32
}

// maxEntered bounds the processes written between two looks whose cgroups are told.
const maxEntered = 4096

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
	n.paths = make(map[int32]string, len(n.paths))
	err := h.Walk(scope, func(path string) error {
		if n.watches == n.max {
			return errWatchesFull
		}
		watch, err := unix.InotifyAddWatch(n.fd, h.Dir(cgroup.CPU, path), unix.IN_CREATE|unix.IN_DELETE|unix.IN_MODIFY|unix.IN_ONLYDIR)
		switch {
		case errors.Is(err, unix.ENOSPC):
			return errWatchesFull
		case errors.Is(err, unix.ENOENT):
			return nil
		case err != nil:
			return err
		}
		n.watches++
		n.paths[int32(watch)] = path
		return nil
	})
	n.whole = err == nil
	return err
}

// look returns the events since the last call.
func (n *notifier) look() (found events) {
	if n.fd < 0 {
		return found
	}
	for {
		size, err := unix.Read(n.fd, n.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || size <= 0 {
			for _, watch := range found.watches {
				if path, ok := n.paths[watch]; ok {
					found.entered = append(found.entered, path)
				}
			}
			return found
		}
		found.take(n.buf[:size])
	}
}

// take walks through inotify events (inotify(7)): watch, mask, cookie, length of the name, name. A truncated event
// counts as anything.
func (e *events) take(raw []byte) {
	for len(raw) >= unix.SizeofInotifyEvent {
		mask, length := binary.NativeEndian.Uint32(raw[4:]), binary.NativeEndian.Uint32(raw[12:])
		size := unix.SizeofInotifyEvent + int(length)
		directory := mask&unix.IN_ISDIR != 0
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0 || size > len(raw):
			e.made, e.written = true, true
			return
		case mask&unix.IN_CREATE != 0 && directory:
			e.made = true
		case mask&unix.IN_IGNORED != 0, mask&unix.IN_DELETE != 0 && directory:
			e.written = true
		case mask&unix.IN_MODIFY != 0:
			name := raw[unix.SizeofInotifyEvent:size]
			e.written = e.written || isSetting(name)
			if isMembers(name) && len(e.watches) < maxEntered {
				e.watches = append(e.watches, int32(binary.NativeEndian.Uint32(raw)))
			}
		}
		raw = raw[size:]
	}
}

// isSetting reports whether a file, whose name zeros follow, is a setting of the cpu or cpuset controller. Programs write
// cgroup.procs and tasks far more often.
func isSetting(name []byte) bool {
	return bytes.HasPrefix(name, []byte("cpu.")) || bytes.HasPrefix(name, []byte("cpuset."))
}

// isMembers reports whether a file, whose name zeros follow, takes processes or threads.
func isMembers(name []byte) bool {
	name = bytes.TrimRight(name, "\x00")
	return string(name) == cgroup.FileProcs || string(name) == "tasks" || string(name) == "cgroup.threads"
}

func (n *notifier) close() {
	if n.fd >= 0 {
		unix.Close(n.fd)
		n.fd = -1
	}
}
