package roles

import "time"

// leastSeen is the share of a group's CPU time that a side has at least to be a role where wakers are not known: a thread that looks
// around on a timer has many runs too.
const leastSeen = 0.002

// Seen is a thread as its counters tell of it, where its events are not known.
type Seen struct {
	PID, TID uint32
	Comm     string // raw
	// CPU is the CPU time that it used, Runs how often it slept after some of it.
	CPU  time.Duration
	Runs int
	// Born says that its process began meanwhile, Ended that it ended.
	Born, Ended bool
}

// Process is a process of such threads.
type Process struct {
	Name string   // that of its main thread
	Argv []string // nil: not known
}

// Of returns the roles of threads by their counters: who woke them is not known, so that lengths of runs alone part them. poolOf names
// the pool of a thread of a process by its name, as for NewScan. goes tells whether Go built a process; it is asked for processes
// whose threads would be parted by the length of their runs.
func Of(threads []Seen, processes map[uint32]Process, poolOf func(pid uint32, comm string) string, goes func(pid uint32) bool) *Roles {
	s := &Scan{poolOf: poolOf, processes: map[uint32]*process{}, parts: map[partKey]*part{}, goes: goes}
	for i := range threads {
		t := &threads[i]
		p := s.process(t.PID)
		if p == nil || len(s.order) == maxParts {
			break
		}
		p.name, p.title, p.born = processes[t.PID].Name, processes[t.PID].Argv, p.born || t.Born
		key := partKey{t.TID, poolOf(t.PID, t.Comm)}
		if s.parts[key] == nil {
			s.parts[key] = &part{tid: t.TID, pool: key.pool, process: p, main: t.TID == t.PID}
			s.order = append(s.order, s.parts[key])
		}
		of := s.parts[key]
		of.total, of.runs, of.ended = of.total+int64(t.CPU), of.runs+t.Runs, of.ended || t.Ended
	}
	return s.roles()
}
