package forecast

import "time"

// # Problem
//
// An event loop reads the requests of many clients before it answers one. Of a thread's CPU time from the read of a request to its
// answer, most may be of others: behind an export of 100 ms, 100 ms of each ping. Such times tell no kinds apart. On a server of
// aiohttp 3.8, requests took 76.6 s by them together, in 5.3 s of CPU time.
//
// # Rule
//
// A thread's CPU time between two of its reads and writes is of one request:
//
//   - before a write, of the request that is answered;
//   - before a read, of the request that was read or answered last;
//   - between the read of one request and the answer to another, of the one that is answered where the thread works before it writes, as
//     asyncio does (it reads all, then runs the first handler), and of the one that was read where it works as it reads, as Redis does
//     (it runs each command once it is read, and answers them all at the end). Which one shows in the other times: whether the thread
//     uses more CPU time from answer to answer, or from read to read.
//
// Of a thread that answers what another one read, time before it was woken does not count. A thread that serves one request at a time
// has one reading and one answer in turns: all its time in between is of that request.
//
// # Worked example
//
// A thread reads a ping and an export at 0 ms, runs for 1 ms, answers the ping, runs for 100 ms and answers the export: 1 and 100 ms.
// In reverse order 100 ms pass before the export's answer, and the ping has 1 ms all the same.
//
// # Limits
//
//   - Work without a read or a write at its end is of whoever is read or answered next to it: a handler that computes, and then waits for
//     something else (await), gives its first part to the request answered next.
//   - Timers' work of the thread counts as a request's.
//   - A thread that lets go of a lock wakes the next one, as if it handed over a result. Only of runtimes with one lock (oneLock) is it
//     known; there what a thread of a pool did for a request is not counted, so that an export in a pool of Python's is of the pings' kind.

// share gives a thread's CPU time since its last read or write to the request that it was for. The thread now reads or answers next.
func (b *builder) share(t *thread, next *exchange, read bool) {
	last, lastRead, cost := t.served, t.servedRead, t.spent(b.now)-t.servedAt
	t.served, t.servedRead, t.servedAt = next, read, t.spent(b.now)
	switch other := last != next; {
	case read && last == nil:
	case read:
		last.charge(t, cost)
		if lastRead && other {
			t.afterReads += cost
		}
	case t != next.reader:
		next.charge(t, min(cost, int64(b.atWork(t))))
	case other && lastRead:
		next.before += cost
		last.after += cost
	default:
		next.charge(t, cost)
		if other {
			t.beforeWrites += cost
		}
	}
}

// charge adds a thread's CPU time to a request's.
func (x *exchange) charge(t *thread, ns int64) {
	switch t {
	case x.reader:
		x.byReader += ns
	case x.writer:
		x.byWriter += ns
	}
}

// unsettled is CPU time of the thread that read and answered a request, between the read of one request and the answer to another: before
// this one's answer, and after this one's read.
type unsettled struct{ before, after int64 }

// of is which of it is the request's.
func (u unsettled) of(t *thread) time.Duration {
	if t.beforeWrites >= t.afterReads {
		return time.Duration(u.before)
	}
	return time.Duration(u.after)
}
