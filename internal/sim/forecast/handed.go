package forecast

import "github.com/unthrottle/unthrottle/internal/see/schedule"

// # Problem
//
// A thread that reads a request and hands it to others answers with what they did, which is of the request's work too. It may be woken
// many times meanwhile: by a child process that compresses an export, at each block that it reads from the pipe; by the one that lets go
// of the process's lock; by a disk. Only the last wake-up before the answer would make an export as cheap as a ping.
//
// # Rule
//
// As long as a thread neither reads nor answers another request, what one thread did between its wake-ups of it is of the request that it
// read. At the first wake-up that is what the waker did since it was woken itself. Wake-ups by a lock or by the kernel change nothing
// meanwhile; one by another helper begins anew, so that no CPU time counts twice.
//
// # Limits
//
//   - A thread that helps others too between two wake-ups of this one hands over what it did for them.
//   - Of several helpers in turn the last one counts.

// handed is what other threads of the container did for the request that a thread has read, or for what woke it if it has read none.
type handed struct {
	request *exchange // nil: it has read none that it did not answer
	by      *thread   // nil: nobody
	spent   int64     // CPU time of by at its last wake-up of the thread
	work    int64     // CPU time of by
	behind  int64     // of the thread that woke by
}

// hand notes what a thread gets with a wake-up. waker is nil for one that is not of the container.
func (b *builder) hand(waker, t *thread) {
	h := &t.handed
	if !t.servedRead || h.request != t.served {
		*h = handed{}
		if t.servedRead {
			h.request = t.served
		}
	}
	if waker == nil || waker == t || b.handsLock(waker, t) {
		return
	}
	work := b.inLastRun(waker)
	if h.by == waker {
		work = max(work, h.work+waker.spent(b.now)-h.spent)
	}
	h.by, h.spent, h.work, h.behind = waker, waker.spent(b.now), work, 0
	if waker.handed.by != t { // its own work counts already
		h.behind = waker.handed.work
	}
}

// inLastRun is the CPU time of the run in which a thread wakes another one. It may sleep already when that is recorded (workedLast says
// why): then it is that of the run which has ended.
func (b *builder) inLastRun(t *thread) int64 {
	if t.State == schedule.Sleeping {
		return t.before
	}
	return int64(b.atWork(t))
}
