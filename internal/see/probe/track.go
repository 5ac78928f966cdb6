package probe

import (
	"cmp"
	"maps"
	"slices"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// tracker turns the kernel's records into a recording's events. It knows the state of every thread of the container and
// the holder of every CPU. Before begin it only follows; from then on it passes events.
type tracker struct {
	startNS uint64
	sink    func(*recording.Event) error // nil before begin
	err     error
	threads map[uint32]*tracked
	cpus    map[int32]uint64 // holder code
	owners  map[uint64]uint32
	names   map[uint64]recording.Event // Define without its number
	// container returns the watched container of a slot number + 1, or nil.
	container func(uint32) *Container
	// times are user and kernel time of threads that ended.
	times     map[uint32]recording.ThreadTime
	lost      uint64
	datagrams datagrams
}

// tracked is a thread of the container.
type tracked struct {
	recording.Thread
	held      bool
	throttler uint64
	seen      uint64 // CLOCK_MONOTONIC of its last record
}

func newTracker(container func(uint32) *Container) *tracker {
	return &tracker{
		threads: map[uint32]*tracked{}, cpus: map[int32]uint64{}, owners: map[uint64]uint32{},
		names: map[uint64]recording.Event{}, times: map[uint32]recording.ThreadTime{}, container: container,
	}
}

// row takes a thread as the iterator saw it.
func (t *tracker) row(r *bpfThreadRow) {
	t.threads[r.Tid] = &tracked{
		Thread: recording.Thread{
			TID: r.Tid, TGID: r.Tgid, Comm: comm(r.Comm), Cgroup: r.Cgroup,
			State: recording.State(r.State), CPU: int32(r.Cpu), Nice: int8(r.Nice),
		},
		held: r.Held != 0, seen: r.At,
	}
}

// snapshot returns the threads by number, as they are now.
func (t *tracker) snapshot() []recording.Thread {
	all := make([]recording.Thread, 0, len(t.threads))
	for _, k := range t.threads {
		all = append(all, k.Thread)
	}
	slices.SortFunc(all, func(a, b recording.Thread) int { return cmp.Compare(a.TID, b.TID) })
	return all
}

// begin passes events from now on. The first ones are the state at the start: the holders of the CPUs and the threads
// held back.
func (t *tracker) begin(startNS uint64, sink func(*recording.Event) error) error {
	t.startNS, t.sink = startNS, sink
	for _, cpu := range slices.Sorted(maps.Keys(t.cpus)) {
		code := t.cpus[cpu]
		if kindOf(code) == bpfHolderKindHOLDER_THREAD {
			continue
		}
		owner := t.owner(code, startNS)
		t.tell(startNS, recording.Event{Kind: recording.Switch, CPU: cpu, Owner: owner, NextOwner: owner})
	}
	for _, tid := range slices.Sorted(maps.Keys(t.threads)) {
		if k := t.threads[tid]; k.held && k.State == recording.Runnable {
			t.tell(startNS, recording.Event{Kind: recording.Hold, CPU: k.CPU, Thread: tid, Cgroup: k.throttler})
		}
	}
	return t.err
}

func (t *tracker) tell(at uint64, e recording.Event) {
	if t.sink == nil || t.err != nil {
		return
	}
	e.AtNS = int64(at - t.startNS)
	t.err = t.sink(&e)
}

func kindOf(code uint64) bpfHolderKind { return bpfHolderKind(code >> 32) }

// owner returns the number of a holder that is no thread of the container, and defines it at its first use.
func (t *tracker) owner(code uint64, at uint64) uint32 {
	number := uint32(code)
	var define recording.Event
	switch kindOf(code) {
	case bpfHolderKindHOLDER_IDLE:
		return recording.Idle
	case bpfHolderKindHOLDER_CONTAINER:
		c := t.container(number)
		if c == nil {
			return recording.Root
		}
		define = recording.Event{OwnerKind: recording.OwnerContainer, Text: cmp.Or(c.Name, c.Path), Cgroup: c.ID}
	case bpfHolderKindHOLDER_PROCESS:
		if number == 0 { // more processes than the recording names
			return recording.Root
		}
		define = recording.Event{OwnerKind: recording.OwnerProcess, Text: t.names[code].Text, TGID: number}
	default:
		return recording.Kernel
	}
	if n, ok := t.owners[code]; ok {
		return n
	}
	if t.sink == nil {
		return recording.Root // no sink yet
	}
	n := recording.FirstOwner + uint32(len(t.owners))
	t.owners[code] = n
	define.Kind, define.Owner = recording.Define, n
	t.tell(at, define)
	return n
}

// sides splits a holder into the container's thread or the owner.
func (t *tracker) sides(code uint64, at uint64) (thread, owner uint32) {
	if kindOf(code) == bpfHolderKindHOLDER_THREAD {
		return uint32(code), 0
	}
	return 0, t.owner(code, at)
}

// ended removes a thread.
func (t *tracker) ended(tid uint32) { delete(t.threads, tid) }

// on takes one record.
func (t *tracker) on(e *event) error {
	cpu := int32(e.Cpu)
	switch bpfRecordKind(e.Kind) {
	case bpfRecordKindRECORD_SWITCH:
		t.switched(e, cpu)
	case bpfRecordKindRECORD_WAKEUP:
		t.woken(e)
	case bpfRecordKindRECORD_MIGRATE:
		if k := t.threads[uint32(e.A)]; k != nil && e.At >= k.seen {
			k.CPU = int32(e.B)
		}
		t.tell(e.At, recording.Event{Kind: recording.Migrate, CPU: int32(e.B), Thread: uint32(e.A)})
	case bpfRecordKindRECORD_THREAD:
		t.introduced(e)
	case bpfRecordKindRECORD_LEAVE:
		tid := uint32(e.A)
		if k := t.threads[tid]; k != nil {
			t.tell(e.At, recording.Event{Kind: recording.Leave, Thread: tid, TGID: k.TGID, Text: k.Comm, Cgroup: e.B})
			t.ended(tid)
		}
	case bpfRecordKindRECORD_EXIT:
		tid := uint32(e.A)
		if _, known := t.times[tid]; known || len(t.times) < maxThreadTimes {
			t.times[tid] = recording.ThreadTime{TID: tid, UserNS: int64(e.B), KernelNS: int64(e.more)}
		}
		t.tell(e.At, recording.Event{Kind: recording.Exit, CPU: cpu, Thread: tid})
		t.ended(tid)
	case bpfRecordKindRECORD_HOLD:
		t.queue(e, func(k *tracked) {
			if !k.held {
				k.held, k.throttler = true, e.more
				t.tell(e.At, recording.Event{Kind: recording.Hold, CPU: k.CPU, Thread: k.TID, Cgroup: e.more})
			}
		})
	case bpfRecordKindRECORD_RELEASE:
		t.queue(e, func(k *tracked) {
			if k.held {
				k.held = false
				t.tell(e.At, recording.Event{Kind: recording.Release, CPU: k.CPU, Thread: k.TID})
			}
		})
	case bpfRecordKindRECORD_PERIOD:
		p := e.period
		quota := int64(p.Quota)
		if quota < 0 { // RUNTIME_INF, all bits set: no quota
			quota = -1
		}
		t.tell(e.At, recording.Event{Kind: recording.Period, CPU: cpu, Cgroup: e.A, Period: recording.PeriodState{
			QuotaNS: quota, LeftNS: int64(p.Left), BurstNS: int64(p.Burst),
			Periods: uint32(e.B >> 32), Throttled: uint32(e.B), StoppedCPUs: uint32(p.StoppedCpus),
		}})
	case bpfRecordKindRECORD_LOST:
		if t.sink != nil {
			t.lost += e.A
		}
		t.datagrams.forget()
		t.tell(e.At, recording.Event{Kind: recording.Lost, CPU: cpu, Count: e.A})
	case bpfRecordKindRECORD_RECEIVE:
		t.tell(e.At, recording.Event{Kind: recording.Receive, CPU: cpu, Thread: uint32(e.A), Socket: uint32(e.B),
			Count: e.At - min(e.At, e.more)})
	case bpfRecordKindRECORD_SEND:
		t.tell(e.At, recording.Event{Kind: recording.Send, CPU: cpu, Thread: uint32(e.A), Socket: uint32(e.B)})
	case bpfRecordKindRECORD_DATAGRAM_READ:
		if n := t.datagrams.read(e.datagram); n > 0 {
			t.tell(e.At, recording.Event{Kind: recording.Receive, CPU: cpu, Thread: uint32(e.A), Socket: n,
				Count: e.At - min(e.At, e.datagram.Since)})
		}
	case bpfRecordKindRECORD_DATAGRAM_SENT:
		if n := t.datagrams.sent(e.datagram); n > 0 {
			t.tell(e.At, recording.Event{Kind: recording.Send, CPU: cpu, Thread: uint32(e.A), Socket: n})
		}
	case bpfRecordKindRECORD_HOLDER:
		t.holder(e, cpu)
	case bpfRecordKindRECORD_PROCESS:
		code := uint64(bpfHolderKindHOLDER_PROCESS)<<32 | e.A
		t.names[code] = recording.Event{Text: comm(e.thread.Comm)}
	}
	return t.err
}

// holder passes who has a CPU. The iterator may see a thread while its CPU switches, in either state. The record of the
// holder decides: that thread runs, and no other thread there does.
func (t *tracker) holder(e *event, cpu int32) {
	t.cpus[cpu] = e.A
	thread := kindOf(e.A) == bpfHolderKindHOLDER_THREAD
	for tid, k := range t.threads {
		switch {
		case e.At < k.seen:
		case thread && tid == uint32(e.A):
			k.State, k.CPU, k.held = recording.Running, cpu, false
		case k.State == recording.Running && k.CPU == cpu:
			k.State = recording.Runnable
		}
	}
}

func (t *tracker) switched(e *event, cpu int32) {
	s := recording.Event{Kind: recording.Switch, CPU: cpu, Flags: flagsOf(e.Flags)}
	s.Thread, s.Owner = t.sides(e.A, e.At)
	s.NextThread, s.NextOwner = t.sides(e.B, e.At)
	t.cpus[cpu] = e.B
	if k := t.threads[s.Thread]; k != nil && e.At >= k.seen {
		k.State, k.CPU, k.held = recording.Sleeping, cpu, false
		if s.Flags&recording.PrevRunnable != 0 {
			k.State = recording.Runnable
		}
		if s.Flags&recording.Throttled != 0 {
			k.held, k.throttler = true, e.more
		}
	}
	if k := t.threads[s.NextThread]; k != nil && e.At >= k.seen {
		k.State, k.CPU, k.held = recording.Running, cpu, false
	}
	if s.Flags&recording.Throttled != 0 {
		s.Cgroup = e.more
	}
	t.tell(e.At, s)
}

func (t *tracker) woken(e *event) {
	w := recording.Event{Kind: recording.Wakeup, Thread: uint32(e.A), CPU: int32(e.A >> 32), Flags: flagsOf(e.Flags)}
	w.Waker, w.Owner = t.sides(e.B, e.At)
	if w.Flags&recording.Throttled != 0 {
		w.Cgroup = e.more
	}
	if k := t.threads[w.Thread]; k != nil && e.At >= k.seen {
		k.State, k.CPU = recording.Runnable, w.CPU
		k.held, k.throttler = w.Flags&recording.Throttled != 0, e.more
	}
	t.tell(e.At, w)
}

// introduced takes a thread that is new here, has a new name, or is in another cgroup of the container.
func (t *tracker) introduced(e *event) {
	r := e.thread
	tid, name := uint32(e.A), comm(r.Comm)
	k := t.threads[tid]
	out := recording.Event{Kind: recording.Name, Thread: tid, TGID: uint32(e.B), Cgroup: r.Cgroup, Text: name}
	switch {
	case k == nil:
		k = &tracked{Thread: recording.Thread{TID: tid, TGID: uint32(e.B), CPU: int32(e.Cpu)}}
		t.threads[tid] = k
		if e.Flags&uint8(bpfRecordFlagsFLAG_MOVED) != 0 {
			out.Kind = recording.Enter
		}
	case e.At < k.seen:
		return
	case k.Cgroup != r.Cgroup:
		out.Kind = recording.Enter
	case k.Comm == name:
		return
	}
	k.Comm, k.Cgroup = name, r.Cgroup
	t.tell(e.At, out)
}

// queue visits the threads that wait in a cgroup on a CPU.
func (t *tracker) queue(e *event, each func(*tracked)) {
	var there []*tracked
	for _, k := range t.threads {
		if k.Cgroup == e.A && k.CPU == int32(e.B) && k.State == recording.Runnable && e.At >= k.seen {
			there = append(there, k)
		}
	}
	slices.SortFunc(there, func(a, b *tracked) int { return cmp.Compare(a.TID, b.TID) })
	for _, k := range there {
		each(k)
	}
}

func flagsOf(f uint8) recording.Flags {
	var out recording.Flags
	for _, pair := range []struct {
		from bpfRecordFlags
		to   recording.Flags
	}{
		{bpfRecordFlagsFLAG_RUNNABLE, recording.PrevRunnable},
		{bpfRecordFlagsFLAG_THROTTLED, recording.Throttled},
		{bpfRecordFlagsFLAG_NEW, recording.New},
		{bpfRecordFlagsFLAG_IN_KERNEL, recording.InKernel},
	} {
		if f&uint8(pair.from) != 0 {
			out |= pair.to
		}
	}
	return out
}
