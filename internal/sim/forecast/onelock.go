package forecast

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// oneLock are runtimes in which one thread of a process runs the language's code at a time: CPython's global interpreter lock
// (Python/ceval_gil.c: take_gil, drop_gil), PyPy's and that of CRuby (thread_pthread.c). A thread that lets go of the lock wakes the one
// that waits for it, so that most wake-ups by threads of the process hand over no result.
var oneLock = []string{"python", "pypy", "ruby"}

// locked are the processes with one lock, by the names of their executables: python3.11, and not python3.14t, which is built without.
func locked(processes []recording.Process) map[uint32]bool {
	all := map[uint32]bool{}
	for _, p := range processes {
		name := path.Base(cmp.Or(p.Exe, p.Comm))
		if slices.ContainsFunc(oneLock, func(program string) bool {
			version, is := strings.CutPrefix(name, program)
			return is && strings.Trim(version, "0123456789.") == ""
		}) {
			all[p.TGID] = true
		}
	}
	return all
}

// handsLock reports whether a wake-up hands over no more than the lock of a process.
func (b *builder) handsLock(waker, t *thread) bool { return waker.TGID == t.TGID && b.locked[t.TGID] }
