package roles

import (
	"path"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Bounds of the memory of a scan, whatever the events say.
const (
	maxThreads   = 1 << 14 // at once
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

// thread is the state of a thread.
type thread struct {
	tid, tgid uint32
	fresh     bool // created during the recording
	part      *part
	run       int64 // CPU time since it woke
}

// cpu is the container's thread on a CPU since a time; nil: none.
type cpu struct {
	thread *thread
	since  int64
}

type partKey struct {
	tid  uint32
	pool string
}

// Scan reads a recording's events. It is not safe for concurrent use.
type Scan struct {
	poolOf    func(tgid uint32, comm string) string
	processes map[uint32]*process
	threads   map[uint32]*thread
	parts     map[partKey]*part
	order     []*part
	cpus      map[int32]*cpu
	now       int64
}

// NewScan begins with a recording's header. poolOf names the pool of a thread of process tgid with name comm; it
// must give the same answer whenever it is asked the same.
func NewScan(h *recording.Header, poolOf func(tgid uint32, comm string) string) *Scan {
	s := &Scan{poolOf: poolOf, processes: map[uint32]*process{}, threads: map[uint32]*thread{},
		parts: map[partKey]*part{}, cpus: map[int32]*cpu{}}
	for i := range h.Processes {
		s.learn(&h.Processes[i])
	}
	for _, t := range h.Threads {
		if p := s.process(t.TGID); p != nil && t.TID == t.TGID {
			p.name = t.Comm
		}
	}
	for _, t := range h.Threads {
		s.name(s.thread(t.TID), t.TGID, t.Comm)
		if t.State == recording.Running && s.threads[t.TID] != nil {
			s.cpus[t.CPU] = &cpu{thread: s.threads[t.TID]}
		}
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

// thread returns the thread with that id; nil: there are too many.
func (s *Scan) thread(tid uint32) *thread {
	t := s.threads[tid]
	if t == nil && tid != 0 && len(s.threads) < maxThreads {
		t = &thread{tid: tid}
		s.threads[tid] = t
	}
	return t
}

// name gives a thread its name: what it does from now on counts for that name.
func (s *Scan) name(t *thread, tgid uint32, comm string) {
	if t == nil {
		return
	}
	for _, c := range s.cpus {
		if c.thread == t {
			s.charge(c)
		}
	}
	if tgid != 0 {
		t.tgid = tgid
	}
	p := s.process(t.tgid)
	if p == nil {
		t.part = nil
		return
	}
	p.born = p.born || t.fresh && t.tid == t.tgid
	key := partKey{t.tid, s.poolOf(t.tgid, comm)}
	if t.part = s.parts[key]; t.part == nil && len(s.order) < maxParts {
		t.part = &part{tid: t.tid, pool: key.pool, process: p, main: t.tid == t.tgid}
		s.parts[key] = t.part
		s.order = append(s.order, t.part)
	}
}

// charge counts the CPU time of the thread on a CPU up to now.
func (s *Scan) charge(c *cpu) {
	if t := c.thread; t != nil && t.part != nil && s.now > c.since {
		t.part.total += s.now - c.since
		t.run += s.now - c.since
	}
	c.since = s.now
}

// Add takes the next event.
func (s *Scan) Add(e *recording.Event) {
	s.now = max(s.now, e.AtNS)
	switch e.Kind {
	case recording.Switch:
		s.onSwitch(e)
	case recording.Wakeup:
		s.onWakeup(e)
	case recording.Name, recording.Enter:
		if p := s.process(e.TGID); p != nil && e.Thread == e.TGID {
			p.name = e.Text
		}
		s.name(s.thread(e.Thread), e.TGID, e.Text)
	case recording.Exit, recording.Leave:
		if t := s.threads[e.Thread]; t != nil {
			s.endRun(t)
			if t.part != nil {
				t.part.ended = true
			}
			delete(s.threads, e.Thread)
		}
	}
}

func (s *Scan) onSwitch(e *recording.Event) {
	c := s.cpus[e.CPU]
	if c == nil {
		c = &cpu{}
		s.cpus[e.CPU] = c
	}
	s.charge(c)
	if prev := s.threads[e.Thread]; prev != nil && e.Flags&recording.PrevRunnable == 0 {
		s.endRun(prev)
	}
	c.thread = s.threads[e.NextThread]
}

// endRun ends the run of a thread that sleeps or ends.
func (s *Scan) endRun(t *thread) {
	if t.run > 0 && t.part != nil {
		t.part.runs++
		t.part.longest = max(t.part.longest, t.run)
	}
	t.run = 0
}

func (s *Scan) onWakeup(e *recording.Event) {
	t := s.thread(e.Thread)
	if t == nil {
		return
	}
	if e.Flags&recording.New != 0 {
		t.fresh = true
		if p := s.processes[t.tgid]; p != nil && t.tid == t.tgid {
			p.born = true
		}
		return
	}
	if t.part == nil {
		return
	}
	by := byOutside
	switch waking := s.threads[e.Waker]; {
	case e.Waker == 0 && e.Owner == recording.Kernel:
		by = byTimer
	case e.Waker == 0:
	case waking != nil && waking.tgid != t.tgid:
		by = byOther
	default:
		by = bySibling
	}
	t.part.woken[by]++
}

// Finish ends the recording and returns its roles. Call it once.
func (s *Scan) Finish(f recording.Footer) *Roles {
	s.now = max(s.now, f.EndNS)
	for _, c := range s.cpus {
		s.charge(c)
	}
	for _, t := range s.threads {
		s.endRun(t)
	}
	for i := range f.Processes {
		s.learn(&f.Processes[i])
	}
	return s.roles()
}
