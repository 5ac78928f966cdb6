package forecast

// leftOut counts the threads that the replay has no place for. The kernel uses an id again once its thread has ended, so
// that it follows those that are there. The zero value has none.
type leftOut struct {
	count     int
	uncounted bool            // more than maxThreads were there at once, and the rest was not counted
	dying     map[uint32]bool // of the threads that are there, by id
}

func (l *leftOut) add(tid uint32) {
	if _, known := l.dying[tid]; known {
		return
	}
	if len(l.dying) == maxThreads {
		l.uncounted = true
		return
	}
	if l.dying == nil {
		l.dying = map[uint32]bool{}
	}
	l.dying[tid] = false
	l.count++
}

// exits notes that a thread exits. It runs on until it leaves its CPU for the last time.
func (l *leftOut) exits(tid uint32) {
	if _, known := l.dying[tid]; known {
		l.dying[tid] = true
	}
}

// stopped notes that a thread left its CPU.
func (l *leftOut) stopped(tid uint32) {
	if l.dying[tid] {
		delete(l.dying, tid)
	}
}

// leaves notes that a thread left the container.
func (l *leftOut) leaves(tid uint32) { delete(l.dying, tid) }
