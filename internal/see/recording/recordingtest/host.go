package recordingtest

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// step is the time between two decisions of the ideal host.
const step = 100 * time.Microsecond

// host runs a schedule in steps.
type host struct {
	s       *Schedule
	now     time.Duration
	threads map[uint32]*thread
	order   []uint32
	cpus    []*thread // the running thread, nil without one of ours
	owner   []uint32  // the other holder
	since   []time.Duration
	levels  []*level
	events  []recording.Event
	width   []int64
	wanted  []int64
	onCPU   map[int]int64
	usage   int64
}

type thread struct {
	tid     uint32
	left    time.Duration
	cpu     int
	running bool
	held    uint64 // id of the quota
	queued  time.Duration
	begun   bool          // during the recording
	asked   time.Duration // when the request came that it has not read; -1: none
}

type level struct {
	quota
	left      time.Duration
	periods   uint32
	throttled uint32
}

func newHost(s *Schedule) *host {
	h := &host{s: s, threads: map[uint32]*thread{}, onCPU: map[int]int64{}}
	for _, t := range s.header.Threads {
		h.threads[t.TID] = &thread{tid: t.TID, asked: -1}
		h.order = append(h.order, t.TID)
	}
	h.cpus, h.owner, h.since = make([]*thread, s.cpus), make([]uint32, s.cpus), make([]time.Duration, s.cpus)
	for _, q := range []quota{s.own, s.parent} {
		if q.period > 0 {
			h.levels = append(h.levels, &level{quota: q, left: q.quota})
		}
	}
	slices.SortStableFunc(s.jobs, func(x, y job) int { return int(x.at - y.at) })
	for c := range s.cpus {
		h.tell(recording.Event{Kind: recording.Switch, CPU: int32(c)})
	}
	return h
}

func (h *host) tell(e recording.Event) {
	e.AtNS = h.now.Nanoseconds()
	h.events = append(h.events, e)
}

func (h *host) run(length time.Duration) {
	jobs := h.s.jobs
	for ; h.now < length; h.now += step {
		h.refill()
		for len(jobs) > 0 && jobs[0].at <= h.now {
			h.wake(jobs[0])
			jobs = jobs[1:]
		}
		h.occupy()
		h.schedule()
		h.count()
		h.spend()
	}
}

// refill ends periods.
func (h *host) refill() {
	for _, l := range h.levels {
		if h.now == 0 || h.now%l.period != 0 {
			continue
		}
		stopped := uint32(0)
		for _, t := range h.threads {
			if t.held == l.id {
				stopped = 1
			}
		}
		h.tell(recording.Event{Kind: recording.Period, Cgroup: l.id, Period: recording.PeriodState{
			QuotaNS: l.quota.quota.Nanoseconds(), LeftNS: max(0, l.left.Nanoseconds()), Periods: l.periods,
			Throttled: l.throttled, StoppedCPUs: stopped,
		}})
		l.periods++
		l.throttled += stopped
		l.left = min(l.quota.quota, l.left+l.quota.quota)
		if l.left <= 0 {
			continue
		}
		for _, tid := range h.order {
			if t := h.threads[tid]; t.held == l.id {
				t.held = 0
				if h.s.hold {
					h.tell(recording.Event{Kind: recording.Release, Thread: tid})
				}
			}
		}
	}
}

func (h *host) wake(j job) {
	t := h.threads[j.tid]
	if t == nil {
		t = &thread{tid: j.tid, asked: -1}
		h.threads[j.tid] = t
		h.order = append(h.order, j.tid)
		h.tell(recording.Event{Kind: recording.Name, Thread: t.tid, TGID: t.tid, Text: h.s.born[t.tid], Cgroup: ContainerID})
	}
	if t.left == 0 {
		t.queued, t.asked = h.now, h.now
		by := h.s.wakers[t.tid]
		e := recording.Event{Kind: recording.Wakeup, Thread: t.tid, CPU: int32(t.cpu), Waker: by.thread, Owner: by.owner}
		if _, born := h.s.born[t.tid]; born && !t.begun {
			e.Flags, t.begun = recording.New, true
		}
		if id := h.empty(); id != 0 {
			t.held = id
			if h.s.hold {
				e.Flags, e.Cgroup = e.Flags|recording.Throttled, id
			}
		}
		h.tell(e)
	}
	t.left += j.work
}

// empty returns the id of a level without runtime, 0 if all have some.
func (h *host) empty() uint64 {
	for _, l := range h.levels {
		if l.left <= 0 {
			return l.id
		}
	}
	return 0
}

// occupy gives CPUs to other owners and ends their use.
func (h *host) occupy() {
	for c := range h.cpus {
		owner := recording.Idle
		for _, o := range h.s.others {
			if o.cpu == c && o.from <= h.now && h.now < o.to {
				owner = o.owner
			}
		}
		if owner == h.owner[c] {
			continue
		}
		e := recording.Event{Kind: recording.Switch, CPU: int32(c), Owner: h.owner[c], NextOwner: owner}
		if t := h.cpus[c]; t != nil {
			e.Thread, e.Flags, e.Owner = t.tid, recording.PrevRunnable, 0
			t.running, t.queued = false, h.now
			h.cpus[c] = nil
		}
		h.owner[c] = owner
		h.tell(e)
	}
}

func (h *host) allowed(c int) bool { return h.s.header.CPUsAllowed.Contains(c) }

// schedule ends turns, and gives free CPUs to those that wait longest.
func (h *host) schedule() {
	waiting := h.waiting()
	for c, t := range h.cpus {
		if t != nil && len(waiting) > 0 && h.now-h.since[c] >= turn {
			next := waiting[0]
			waiting = waiting[1:]
			t.running, t.queued = false, h.now
			h.put(c, next, t, recording.PrevRunnable, 0)
		}
	}
	for c, t := range h.cpus {
		if t != nil || h.owner[c] != recording.Idle || !h.allowed(c) || len(waiting) == 0 {
			continue
		}
		h.put(c, waiting[0], nil, 0, 0)
		waiting = waiting[1:]
	}
}

// put lets a thread (or none, nil) run on a CPU after another.
func (h *host) put(c int, t, prev *thread, flags recording.Flags, held uint64) {
	e := recording.Event{Kind: recording.Switch, CPU: int32(c), Flags: flags, Cgroup: held}
	if prev != nil {
		e.Thread = prev.tid
	}
	h.cpus[c] = t
	if t != nil {
		e.NextThread = t.tid
		t.running, t.cpu = true, c
		h.since[c] = h.now
	}
	h.tell(e)
	if t == nil || t.asked < 0 {
		return
	}
	if socket, answers := h.s.socket[t.tid]; answers {
		h.tell(recording.Event{Kind: recording.Receive, Thread: t.tid, Socket: socket, Count: uint64(h.now - t.asked)})
	}
	t.asked = -1
}

func (h *host) waiting() []*thread {
	var all []*thread
	for _, tid := range h.order {
		if t := h.threads[tid]; t.left > 0 && !t.running && t.held == 0 {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(x, y *thread) int { return int(x.queued - y.queued) })
	return all
}

// count keeps the counters that a kernel would have.
func (h *host) count() {
	width, wanted := 0, 0
	for c, t := range h.cpus {
		if t != nil {
			width++
			h.onCPU[c] += step.Nanoseconds()
		}
	}
	for _, t := range h.threads {
		if t.left > 0 {
			wanted++
		}
	}
	h.usage += int64(width) * step.Nanoseconds()
	h.width, h.wanted = at(h.width, width), at(h.wanted, wanted)
	h.width[width] += step.Nanoseconds()
	h.wanted[wanted] += step.Nanoseconds()
}

func at(s []int64, i int) []int64 {
	for len(s) <= i {
		s = append(s, 0)
	}
	return s
}

// spend uses up the step: a thread whose work is done sleeps, and an empty quota holds all threads back. The events are
// at the step's end.
func (h *host) spend() {
	h.now += step
	for c, t := range h.cpus {
		if t == nil {
			continue
		}
		t.left -= step
		for _, l := range h.levels {
			l.left -= step
		}
		if t.left <= 0 {
			t.left, t.running = 0, false
			if socket, answers := h.s.socket[t.tid]; answers {
				h.tell(recording.Event{Kind: recording.Send, Thread: t.tid, Socket: socket})
			}
			h.put(c, nil, t, 0, 0)
		}
	}
	if id := h.empty(); id != 0 {
		for c, t := range h.cpus {
			if t == nil {
				continue
			}
			t.running, t.held, t.queued = false, id, h.now
			flags, of := recording.PrevRunnable, uint64(0)
			if h.s.hold {
				flags, of = flags|recording.Throttled, id
			}
			h.put(c, nil, t, flags, of)
		}
		for _, tid := range h.order {
			if t := h.threads[tid]; t.left > 0 && t.held == 0 {
				t.held = id
				if h.s.hold {
					h.tell(recording.Event{Kind: recording.Hold, Thread: tid, Cgroup: id, CPU: int32(t.cpu)})
				}
			}
		}
	}
	h.now -= step
}

func (h *host) footer(length time.Duration) recording.Footer {
	f := recording.Footer{
		EndNS: length.Nanoseconds(), StealNS: map[int]int64{}, UsageNS: &h.usage, WidthNS: h.width, WantedNS: h.wanted, OnCPUNS: h.onCPU,
		Neighbours: h.s.near,
	}
	for c := range h.cpus {
		f.StealNS[c] = 0
	}
	if h.s.own.period > 0 {
		f.Periods, f.ThrottledPeriods = new(uint64(h.levels[0].periods)), new(uint64(h.levels[0].throttled))
	}
	return f
}
