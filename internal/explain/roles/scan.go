package roles

import (
	"path"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// Bounds of the memory of a scan, whatever the events say.
const (
	maxParts     = 1 << 14
	maxProcesses = 1 << 14
)

// waker is what ended a sleep.
type waker int

const (
	byOutside waker = iota // a client, or a device
	byTimer
	bySibling // a thread of the same process
	byOther   // another process of the container
	wakers
)

// part is one thread under one name: most threads have one name, a child that becomes another program several.
type part struct {
	tid     uint32
	pool    string // base name
	process *process
	main    bool
	total   int64 // CPU time
	longest int64 // CPU time of the longest run
	runs    int   // that ended in a sleep
	woken   [wakers]int
	ended   bool   // during the recording
	role    string // "": the pool's own name
}

// process is a process of the container.
type process struct {
	tgid  uint32
	name  string
	title []string // command line; nil: not known
	born  bool     // during the recording
	goes  bool     // built by Go
}

// thread is what a scan counts of a thread.
type thread struct {
	*schedule.Thread
	fresh bool // created during the recording
	part  *part
	since int64 // its CPU time is counted up to then
	run   int64 // CPU time since it woke
}

type partKey struct {
	tid  uint32
	pool string
}

// Scan is told of a recording's events and changes. It is not safe for concurrent use.
type Scan struct {
	poolOf    func(tgid uint32, comm string) string
	processes map[uint32]*process
	threads   []*thread // by Index; nil: there is none
	parts     map[partKey]*part
	order     []*part
	now       int64
	goes      func(pid uint32) bool // nil: processes know it, and wakers are known
}

// NewScan begins with a recording's header. poolOf names the pool of a thread of process tgid with name comm; it
// must give the same answer whenever it is asked the same.
func NewScan(h *recording.Header, poolOf func(tgid uint32, comm string) string) *Scan {
	s := &Scan{poolOf: poolOf, processes: map[uint32]*process{}, parts: map[partKey]*part{}}
	for i := range h.Processes {
		s.learn(&h.Processes[i])
	}
	return s
}

// learn takes the facts of a process.
func (s *Scan) learn(p *recording.Process) {
	known := s.process(p.TGID)
	if known == nil {
		return
	}
	known.title, known.goes = p.Cmdline, p.Go != ""
	if known.name == "" && p.Exe != "" {
		known.name = path.Base(p.Exe)
	}
}

// process returns the process with that id; nil: there are too many.
func (s *Scan) process(tgid uint32) *process {
	p := s.processes[tgid]
	if p == nil && len(s.processes) < maxProcesses {
		p = &process{tgid: tgid}
		s.processes[tgid] = p
	}
	return p
}

// name gives a thread its name: what it does from now on counts for that name.
func (s *Scan) name(t *thread) {
	s.charge(t, t.Doing)
	p := s.process(t.TGID)
	if p == nil {
		t.part = nil
		return
	}
	if t.TID == t.TGID {
		p.name = t.Comm
	}
	p.born = p.born || t.fresh && t.TID == t.TGID
	key := partKey{t.TID, s.poolOf(t.TGID, t.Comm)}
	if t.part = s.parts[key]; t.part == nil && len(s.order) < maxParts {
		t.part = &part{tid: t.TID, pool: key.pool, process: p, main: t.TID == t.TGID}
		s.parts[key] = t.part
		s.order = append(s.order, t.part)
	}
}

// charge counts the CPU time of a thread up to now.
func (s *Scan) charge(t *thread, was schedule.Doing) {
	if was.State == schedule.Running && t.part != nil {
		t.part.total += s.now - t.since
		t.run += s.now - t.since
	}
	t.since = s.now
}

// Event takes the time of the next event.
func (s *Scan) Event(nowNS int64, _ *recording.Event) { s.now = nowNS }

// Changed takes a change.
func (s *Scan) Changed(c *schedule.Change) {
	switch c.Kind {
	case schedule.Began:
		for len(s.threads) <= c.Thread.Index {
			s.threads = append(s.threads, nil)
		}
		s.threads[c.Thread.Index] = &thread{Thread: c.Thread, since: s.now}
	case schedule.Named:
		s.name(s.threads[c.Thread.Index])
	case schedule.Woke:
		s.woke(s.threads[c.Thread.Index], c)
	case schedule.Did:
		t := s.threads[c.Thread.Index]
		if s.charge(t, c.Was); t.State == schedule.Sleeping {
			s.endRun(t)
		}
	case schedule.Ended:
		if t := s.threads[c.Thread.Index]; t.part != nil {
			t.part.ended = true
		}
		s.threads[c.Thread.Index] = nil
	}
}

// endRun ends the run of a thread that sleeps or ends.
func (s *Scan) endRun(t *thread) {
	if t.run > 0 && t.part != nil {
		t.part.runs++
		t.part.longest = max(t.part.longest, t.run)
	}
	t.run = 0
}

func (s *Scan) woke(t *thread, c *schedule.Change) {
	if c.Event.Flags&recording.New != 0 {
		t.fresh = true
		if p := s.processes[t.TGID]; p != nil && t.TID == t.TGID {
			p.born = true
		}
		return
	}
	if t.part == nil {
		return
	}
	by := bySibling
	switch {
	case c.Event.Waker == 0 && c.Event.Owner == recording.Kernel:
		by = byTimer
	case c.Event.Waker == 0:
		by = byOutside
	case c.Waker != nil && c.Waker.TGID != t.TGID:
		by = byOther
	}
	t.part.woken[by]++
}

// Finish ends the recording and returns its roles. Call it once.
func (s *Scan) Finish(f recording.Footer) *Roles {
	s.now = max(s.now, f.EndNS)
	for _, t := range s.threads {
		if t != nil {
			s.charge(t, t.Doing)
			s.endRun(t)
		}
	}
	for i := range f.Processes {
		s.learn(&f.Processes[i])
	}
	return s.roles()
}
