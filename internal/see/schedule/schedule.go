package schedule

import (
	"path"
	"strings"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Bounds of a reading.
const (
	MaxThreads = 1 << 14 // at once
	MaxCPUs    = 4096
	MaxComm    = 128 // bytes of a name; the kernel keeps 15, and a runtime has longer ones
	// MaxAtNS bounds the time of an event to 19.5 hours, so that the time of all threads together fits in 63 bits.
	MaxAtNS = 1 << 46
)

// State is what a thread does.
type State uint8

// States of a thread.
const (
	Sleeping State = iota // it wants no CPU
	Runnable              // it waits for a CPU
	Held                  // a quota holds it back
	Running
)

// Doing is what a thread does, and where.
type Doing struct {
	State State
	// CPU is where it runs, waits or last ran.
	CPU int32
	// Level is the index of the level that holds it back; only of Held.
	Level int
}

// Wants reports whether the thread wants a CPU.
func (d Doing) Wants() bool { return d.State != Sleeping }

// Waits reports whether it waits for nothing but a CPU.
func (d Doing) Waits() bool { return d.State == Runnable }

// Thread is a thread of the container.
type Thread struct {
	// Index is below MaxThreads and differs from that of every other thread that is there.
	Index     int
	TID, TGID uint32
	// Comm is its name, raw, up to MaxComm bytes, and Process that of the process's first thread, or else of its executable; "": not known,
	// or it ended.
	Comm, Process string
	// Cgroup is the id of its own cgroup; 0: not known.
	Cgroup uint64
	// Allowed and Realtime are those of the header.
	Allowed, Realtime string
	Doing
	dying bool
}

// Holder is who holds a CPU.
type Holder struct {
	// Container: a thread of the container holds it; Thread is nil where that is beyond MaxThreads.
	Container bool
	Thread    *Thread
	// Owner is the number of another owner; Guessed: no event named it.
	Owner   uint32
	Guessed bool
}

// Kind is what changed.
type Kind uint8

// Kinds of changes.
const (
	// Began: the thread is there from now on, asleep.
	Began Kind = iota + 1
	// Named: its name, process or cgroup was told.
	Named
	// Woke: it was woken, and is Runnable or Held.
	Woke
	// Did: it does something else, for another reason than a wake-up.
	Did
	// Moved: it waits or sleeps on another CPU.
	Moved
	// Ended: it is gone. It sleeps since the change before.
	Ended
	// Took: Change.Holder holds Change.CPU from now on. It comes before its thread is Running and after the one before no longer is.
	Took
	// Received and Sent: a request began on Change.Connection, or was written to. Over: no more is written to its request.
	Received
	Sent
	Over
	// Contradicted: the event contradicts earlier ones. Unknown: it is of a thread beyond MaxThreads.
	Contradicted
	Unknown
)

// Change is one change. Which fields count depends on its kind.
type Change struct {
	Kind Kind
	// Thread is as it is after the change; of Received and Sent the one that read or wrote, nil: not known.
	Thread *Thread
	// Was is what the thread did before.
	Was Doing
	// Waker is the thread of the container that woke it; nil: something else did.
	Waker      *Thread
	CPU        int32
	Holder     Holder
	Connection *Connection
	// Event is what made the change; nil: it is of the header, or of the end.
	Event *recording.Event
}

// Watcher is told of a recording's events and changes.
type Watcher interface {
	// Event comes before the changes that the event makes. nowNS is its time in nanoseconds since the beginning, never before that of an
	// earlier event, and at most MaxAtNS.
	Event(nowNS int64, e *recording.Event)
	// Changed comes once a change was made. The change is valid during the call.
	Changed(c *Change)
}

// Reader follows the events of a recording. It is not safe for concurrent use.
type Reader struct {
	watchers    []Watcher
	now         int64
	levels      *Levels
	threads     map[uint32]*Thread
	free        []int // indices of threads that ended
	processes   map[uint32]string
	cpus        []Holder
	connections map[uint32]*Connection
	event       *recording.Event
	change      Change
}

// New begins with a recording's header, and tells the watchers of the threads in it.
func New(h *recording.Header, watchers ...Watcher) *Reader {
	r := &Reader{
		watchers: watchers, levels: NewLevels(h), threads: map[uint32]*Thread{}, processes: map[uint32]string{},
		connections: map[uint32]*Connection{},
	}
	for i := range h.Processes {
		if p := &h.Processes[i]; p.Exe != "" && len(r.processes) < MaxThreads {
			r.processes[p.TGID] = short(path.Base(p.Exe))
		}
	}
	for i := range h.Threads {
		if t := &h.Threads[i]; t.TID == t.TGID {
			r.nameProcess(t.TGID, t.Comm)
		}
	}
	for i := range h.Threads {
		r.begin(&h.Threads[i])
	}
	return r
}

// begin takes a thread of the header.
func (r *Reader) begin(h *recording.Thread) {
	if h.TID == 0 {
		return
	}
	if r.threads[h.TID] != nil {
		r.tell(Change{Kind: Contradicted})
		return
	}
	t := r.thread(h.TID)
	if t == nil {
		return
	}
	t.Allowed, t.Realtime, t.Cgroup, t.CPU = h.Allowed, h.Realtime, h.Cgroup, h.CPU
	r.name(t, h.TGID, h.Comm)
	switch h.State {
	case recording.Running:
		if c := r.cpu(h.CPU); c != nil && c.Thread == nil {
			r.run(t, h.CPU)
			return
		}
		r.set(t, Did, Doing{State: Runnable, CPU: h.CPU}, nil)
	case recording.Runnable:
		r.set(t, Did, Doing{State: Runnable, CPU: h.CPU}, nil)
	}
}

// Thread returns the thread with that id; nil: there is none.
func (r *Reader) Thread(tid uint32) *Thread { return r.threads[tid] }

func (r *Reader) tell(c Change) {
	r.change = c // so that it is allocated once
	r.change.Event = r.event
	for _, w := range r.watchers {
		w.Changed(&r.change)
	}
}

// thread returns the thread with that id, and makes an unknown one, asleep. It returns nil for 0 and beyond MaxThreads.
func (r *Reader) thread(tid uint32) *Thread {
	if tid == 0 {
		return nil
	}
	if t := r.threads[tid]; t != nil {
		return t
	}
	index := len(r.threads)
	switch n := len(r.free); {
	case index == MaxThreads:
		r.tell(Change{Kind: Unknown})
		return nil
	case n > 0:
		index, r.free = r.free[n-1], r.free[:n-1]
	}
	t := &Thread{Index: index, TID: tid}
	r.threads[tid] = t
	r.tell(Change{Kind: Began, Thread: t})
	return t
}

// set makes a thread do something else, if that differs.
func (r *Reader) set(t *Thread, kind Kind, next Doing, waker *Thread) {
	was := t.Doing
	t.Doing = next
	if was.State == next.State && was.Level == next.Level {
		if was.CPU != next.CPU {
			r.tell(Change{Kind: Moved, Thread: t, Was: was})
		}
		return
	}
	r.tell(Change{Kind: kind, Thread: t, Was: was, Waker: waker})
}

// end forgets a thread.
func (r *Reader) end(t *Thread) {
	r.set(t, Did, Doing{CPU: t.CPU}, nil)
	delete(r.threads, t.TID)
	r.free = append(r.free, t.Index)
	r.tell(Change{Kind: Ended, Thread: t, Was: t.Doing})
	t.Comm, t.Process = "", "" // others may keep the thread for its numbers
}

func (r *Reader) nameProcess(tgid uint32, comm string) {
	if _, known := r.processes[tgid]; known || len(r.processes) < MaxThreads {
		r.processes[tgid] = short(comm)
	}
}

func (r *Reader) name(t *Thread, tgid uint32, comm string) {
	if tgid != 0 {
		t.TGID = tgid
	}
	t.Comm, t.Process = short(comm), r.processes[t.TGID]
	r.tell(Change{Kind: Named, Thread: t, Was: t.Doing})
}

// short copies a name, which lets go of the longer text that it is part of.
func short(comm string) string { return strings.Clone(comm[:min(len(comm), MaxComm)]) }

// cpu returns a CPU's holder; nil: its number is impossible.
func (r *Reader) cpu(n int32) *Holder {
	if n < 0 || n >= MaxCPUs {
		r.tell(Change{Kind: Contradicted})
		return nil
	}
	for int(n) >= len(r.cpus) {
		r.cpus = append(r.cpus, Holder{})
	}
	return &r.cpus[n]
}

func (r *Reader) take(n int32, h Holder) {
	r.cpus[n] = h
	r.tell(Change{Kind: Took, CPU: n, Holder: h})
}

// run gives a thread a CPU that its holder has given up.
func (r *Reader) run(t *Thread, n int32) {
	if t.State == Running {
		r.leftUnseen(t)
	}
	r.take(n, Holder{Container: true, Thread: t})
	r.set(t, Did, Doing{State: Running, CPU: n}, nil)
}

// leftUnseen takes a running thread from a CPU that it must have left unseen, and still wants one. Who holds that CPU is not known.
func (r *Reader) leftUnseen(t *Thread) {
	r.tell(Change{Kind: Contradicted})
	n := t.CPU
	r.set(t, Did, Doing{State: Runnable, CPU: n}, nil)
	r.take(n, Holder{Owner: recording.Root, Guessed: true})
}
