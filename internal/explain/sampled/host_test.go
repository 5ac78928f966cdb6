package sampled

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

const (
	ms = time.Millisecond
	// turn is the time that a simulated CPU runs one thread for at a time.
	turn = ms / 4
)

// worker is a simulated thread: every so often it gets work, and it runs until that is done.
type worker struct {
	comm      string
	tid       uint32
	idle      bool          // its process holds no client's connection
	every     time.Duration // 0: it always has work
	work      time.Duration
	ours      bool // of the container; else of a sibling, or of nobody below the quota
	sibling   bool
	left      time.Duration
	next      time.Duration
	ran, wait time.Duration // as the kernel counts: waiting only once it runs again
	runs      uint64
	since     time.Duration // since when it waits
	waits, on bool
}

// host is a small simulated host: CPUs, threads that take turns, and the quota of the container or of its pod.
type host struct {
	cpus          int
	quota, period time.Duration // 0: none
	ofPod         bool
	hides         bool // what stops it is the quota of a pod that is not visible
	workers       []*worker
	now           time.Duration
	left          time.Duration
	throttled     bool
	throttledAt   time.Duration
	counters      Counters
	used, all     time.Duration
	first         int // whose turn it is
	random        *rand.Rand
}

func newHost(seed uint64, cpus int, quota, period time.Duration) *host {
	return &host{cpus: cpus, quota: quota, period: period, left: quota, random: rand.New(rand.NewPCG(seed, 1))}
}

// pool adds threads that wake up at about the same time.
func (h *host) pool(name string, threads int, every, work time.Duration) []*worker {
	at := time.Duration(h.random.Int64N(int64(max(every, turn))))
	var made []*worker
	for i := range threads {
		w := &worker{comm: fmt.Sprintf("%s-%d", name, i), tid: uint32(len(h.workers) + 100), every: every, work: work, ours: true, next: at}
		made = append(made, w)
		h.workers = append(h.workers, w)
	}
	return made
}

// step runs the host for one turn.
func (h *host) step() {
	if h.quota > 0 && h.now%h.period == 0 && h.now > 0 {
		h.counters.Periods++
		if h.throttled {
			h.counters.ThrottledPeriods++
			h.counters.Throttled += (h.now - h.throttledAt) * time.Duration(h.cpus)
		}
		h.left, h.throttled = h.quota, false
	}
	for _, w := range h.workers {
		if w.every == 0 {
			w.left = time.Second
		} else if h.now >= w.next {
			w.left += w.work
			w.next += w.every - w.every/10 + time.Duration(h.random.Int64N(int64(w.every/5)))
		}
		if w.left > 0 && !w.waits && !w.on {
			w.waits, w.since = true, h.now
		}
	}
	free := h.cpus
	for i := range h.workers {
		w := h.workers[(h.first+i)%len(h.workers)]
		limited := h.quota > 0 && (w.ours || w.sibling && h.ofPod)
		if w.left <= 0 || free == 0 || limited && h.left <= 0 {
			if limited && w.left > 0 && h.left <= 0 && !h.throttled {
				h.throttled, h.throttledAt = true, h.now
			}
			if w.on {
				w.on = false
				w.waits, w.since = w.left > 0, h.now
			}
			continue
		}
		free--
		if w.waits {
			w.wait += h.now - w.since
			w.waits = false
		}
		if !w.on {
			w.runs++
		}
		w.on = true
		w.ran += turn
		h.all += turn
		if w.left -= turn; w.left <= 0 {
			w.on = false
		}
		if w.ours {
			h.used += turn
		}
		if limited {
			h.left -= turn
		}
	}
	h.first = (h.first + h.cpus) % max(1, len(h.workers))
	h.now += turn
}

// look takes samples for so long and explains them. closest is the least time between two.
func (h *host) look(length, closest time.Duration) (*Analysis, *time.Duration) {
	own := recording.Level{Path: "/pod/app", PeriodNS: int64(h.period)}
	pod := recording.Level{Path: "/pod", PeriodNS: int64(h.period)}
	if h.quota > 0 && h.ofPod {
		pod.QuotaNS = new(int64(h.quota))
	} else if h.quota > 0 {
		own.QuotaNS = new(int64(h.quota))
	}
	for range 8 * 100 { // 200 ms before the first sample
		h.step()
	}
	t := Target{Name: "app", Path: own.Path, Levels: []recording.Level{own, pod}, CPUsAllowed: h.cpus, CPUsOnline: h.cpus,
		Serves: func(pid uint32) bool { return pid != 99 }}
	if h.hides {
		t.Levels, t.Hidden = t.Levels[:1], true
	}
	var log []Sample
	begin, all := h.now, h.all
	next := h.now
	for h.now-begin < length {
		if h.now >= next {
			log = append(log, *h.sample(h.now - begin))
			next = h.now + closest + time.Duration(h.random.Int64N(int64(closest)/2))
		}
		h.step()
	}
	return Of(t, log), new(h.all - all)
}

// processOf is the process of a worker: those that serve are in another one than those that do not.
func processOf(w *worker) uint32 {
	if w.idle {
		return 99
	}
	return 100
}

func (h *host) sample(at time.Duration) *Sample {
	none := &Counters{}
	counted := h.counters
	s := &Sample{At: at, Counters: []*Counters{&counted, none}, Used: new(h.used)}
	if h.ofPod {
		s.Counters = []*Counters{none, &counted}
	}
	if h.hides {
		none.Periods = counted.Periods
		s.Counters = []*Counters{none}
	}
	for _, w := range h.workers {
		if w.ours {
			s.Threads = append(s.Threads, Thread{PID: processOf(w), TID: w.tid, Comm: w.comm, Ran: w.ran, Waited: w.wait, Runs: w.runs})
		}
	}
	return s
}
