// Package collect makes rows of a host's observations and keeps them in a folder while it observes.
//
// A [Sink] takes each round as it comes and never waits for the disk: a goroutine of its own writes the rows of slots
// that have ended. What cannot be written, such as on a full disk, is tried again with the next slot, up to maxWaiting
// rows; then the oldest go, and Lost counts them. What the node has in the folder is bounded: older files go as new
// ones come. Close writes the slot under way, so that an orderly end loses no row.
package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/topology"
)

// maxWaiting bounds the rows that wait for the disk: two hours of 400 containers.
const maxWaiting = 10_000

// Options say where rows come from and go to.
type Options struct {
	Names demand.Names
	// Dir is the folder.
	Dir string
	// Long are the longer periods for which rows say what a burst would have done; none: no row does.
	Long []time.Duration
	// FS reads weights and memory; nil: requests and memory are not known.
	FS cgroup.FS
	// Proc is the host's proc file system; nil: its CPUs and memory are not known.
	Proc fs.FS
	// Sys is the host's sys file system; nil: how its CPUs are grouped is not known.
	Sys fs.FS
	// InForce returns what is in force; nil, or an error: nothing is known to be.
	InForce func() ([]txn.InForce, error)
	// Objective is a container's; nil, or the zero value: it has none.
	Objective func(container.Container) objective.Objective
	// Keep bounds what the node has in the folder, by the time that Now tells; nil: the host's.
	Keep store.Keep
	Now  func() time.Time
	// Kept is told what the node has there, with all files that went since New; nil: nobody is. It is called from a
	// goroutine of the sink.
	Kept func(store.Kept)
	// Failed is told of rows that could not be written, and of files that could not be removed; nil: nobody is. It is
	// called from a goroutine of the sink.
	Failed func(error)
	// write is store.Write; tests set it.
	write func(dir string, rows []demand.Row) error
}

// Sink takes rounds of observations. Round and Close are of one goroutine, Feed and Period may be of another.
type Sink struct {
	o      Options
	rowsMu sync.Mutex
	rows   *demand.Rows
	wake   chan struct{}
	done   chan struct{}

	mu      sync.Mutex
	waiting []demand.Row
	written int
	lost    int
	kept    store.Kept
	closed  bool
}

// New starts a sink. Close ends it.
func New(o Options) *Sink {
	if o.write == nil {
		o.write = store.Write
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Sink{o: o, rows: demand.NewRows(o.Names, o.Long...), wake: make(chan struct{}, 1), done: make(chan struct{})}
	go s.run()
	return s
}

// Round takes the observations of one round. It does not wait for the disk.
func (s *Sink) Round(observations []observe.Observation) {
	s.rowsMu.Lock()
	done := s.rows.Add(observations)
	s.rowsMu.Unlock()
	if len(done) > 0 {
		s.hand(s.described(done, observations))
	}
}

// Feed says whether Period gets the rows of all periods from now on.
func (s *Sink) Feed(on bool) {
	s.rowsMu.Lock()
	defer s.rowsMu.Unlock()
	s.rows.Feed(on)
}

// Period takes a row of the probe's PeriodRows.
func (s *Sink) Period(p counts.PeriodRow) {
	s.rowsMu.Lock()
	defer s.rowsMu.Unlock()
	s.rows.AddPeriod(p)
}

// Recording takes what a recording of a container tells. Its slot is the one under way.
func (s *Sink) Recording(cgroup uint64, e *diagnose.Explanation) {
	s.rowsMu.Lock()
	defer s.rowsMu.Unlock()
	s.rows.AddRecording(cgroup, recorded(e))
	s.rows.AddPools(cgroup, poolsOf(e))
}

// Pools takes the thread pools in a recording of a container alone. Its slot is the one under way.
func (s *Sink) Pools(cgroup uint64, e *diagnose.Explanation) {
	s.rowsMu.Lock()
	defer s.rowsMu.Unlock()
	s.rows.AddPools(cgroup, poolsOf(e))
}

// Priced takes the least CPUs of a container's remedies, from a recording. Its slot is the one under way.
func (s *Sink) Priced(cgroup uint64, p demand.Pricing) {
	s.rowsMu.Lock()
	defer s.rowsMu.Unlock()
	s.rows.AddPriced(cgroup, p)
}

// recorded is what an explanation adds to a row. Pools of one name, as those of two processes, are one role.
func recorded(e *diagnose.Explanation) demand.Recorded {
	recorded := demand.Recorded{Seconds: e.Window.Seconds(), Responses: map[string][]stats.Length{}}
	for i := range e.Pools {
		if p := &e.Pools[i]; p.Response != nil {
			recorded.Responses[p.Name] = append(recorded.Responses[p.Name], p.Response.Lengths...)
		}
	}
	if r := e.Requests; r != nil && r.Seen {
		recorded.Requests, recorded.RequestsSeen = r.Lengths, true
	}
	return recorded
}

// poolsOf are the pools of an explanation: those that the table of pools has by its key, others by their name.
func poolsOf(e *diagnose.Explanation) (pools []demand.Pool) {
	for _, p := range slices.Concat(e.Pools, e.IdlePools) {
		of := demand.Pool{Pool: p.Key, Threads: int32(p.Size), Runnable: int32(p.Runnable), RunnableP99: int32(p.RunnableP99),
			Running: int32(min(p.Widest, p.Runnable))}
		if p.Key == "" {
			of.Name = p.Name
		}
		if p.DefaultCPUs != nil {
			of.DefaultCPUs = new(int32(*p.DefaultCPUs))
		}
		pools = append(pools, of)
	}
	return pools
}

// described fills in what only the end of a slot needs: it is read once for each container, and not in each round.
func (s *Sink) described(rows []demand.Row, now []observe.Observation) []demand.Row {
	running := map[int64]*container.Container{}
	for i := range now {
		running[demand.CgroupOf(now[i].Container.Group.Path)] = &now[i].Container
	}
	remedies := map[int64]string{}
	if s.o.InForce != nil {
		if inForce, err := s.o.InForce(); err == nil {
			for _, f := range inForce {
				remedies[demand.CgroupOf(f.Target)] = f.Remedy
			}
		}
	}
	began := map[int64]time.Time{} // of each path's last row: what is read now is not of a cgroup that it had before
	for i := range rows {
		if of := rows[i].Cgroup; rows[i].Began.After(began[of]) {
			began[of] = rows[i].Began
		}
	}
	hostCPUs, hostMemory := s.host()
	groups := s.groups()
	for i := range rows {
		rows[i].HostCPUs, rows[i].HostMemoryBytes, rows[i].HostGroups = hostCPUs, hostMemory, groups
		if allowed := rows[i].AllowedCPUs; allowed != nil && hostCPUs != nil && *allowed == *hostCPUs {
			rows[i].CPUList = "" // all of the host's
		}
		rows[i].Remedy = remedies[rows[i].Cgroup]
		if c := running[rows[i].Cgroup]; c != nil && rows[i].Began.Equal(began[rows[i].Cgroup]) {
			rows[i].RequestCPUs, rows[i].MemoryBytes = s.request(c), s.memory(c, hostMemory)
			if s.o.Objective != nil {
				rows[i].SetObjective(s.o.Objective(*c))
			}
		}
	}
	return rows
}

// host is how many CPUs the host has online, and its memory; nil: it is not known.
func (s *Sink) host() (cpus *int32, memoryBytes *int64) {
	if s.o.Proc == nil {
		return nil, nil
	}
	if stat, err := procfs.ReadStat(s.o.Proc); err == nil {
		cpus = new(int32(len(stat.CPUs)))
	}
	if bytes, err := procfs.ReadMemTotal(s.o.Proc); err == nil {
		memoryBytes = &bytes
	}
	return cpus, memoryBytes
}

// groups are how the host's CPUs are grouped; "": it is not known.
func (s *Sink) groups() string {
	if s.o.Sys == nil {
		return ""
	}
	m, err := topology.Read(s.o.Sys)
	if err != nil {
		return ""
	}
	return m.GroupText()
}

// memory is what a container may need; nil: it is not known. Runtimes give a container the same path in all
// hierarchies; where the memory hierarchy has none at that path, or it is the top, whose memory is all containers', it
// is not known.
func (s *Sink) memory(c *container.Container, host *int64) *int64 {
	if s.o.FS == nil || c.Group.Path == "/" {
		return nil
	}
	m, err := cgroup.ReadMemory(s.o.FS, c.Group.Path)
	if err != nil {
		return nil
	}
	need := m.WorkingBytes
	if limit := m.LimitBytes; limit != nil && (host == nil || *limit < uint64(*host)) {
		need = *limit
	}
	return new(int64(min(need, math.MaxInt64)))
}

// request is what a pod's container requests, by its weight; nil: it is in no pod, or the host has cgroup v2, where a
// weight does not say which (see cgroup.RequestsOfWeight).
func (s *Sink) request(c *container.Container) *float64 {
	if s.o.FS == nil || c.Pod == "" {
		return nil
	}
	if v, ok := s.o.FS.Version(cgroup.CPU); !ok || v != cgroup.V1 {
		return nil
	}
	shares, err := cgroup.ReadShares(s.o.FS, c.Group.Path)
	if err != nil || shares <= cgroup.MinShares {
		return nil
	}
	return new(cgroup.RequestOfShares(shares))
}

func (s *Sink) hand(rows []demand.Row) {
	s.mu.Lock()
	s.keep(append(s.waiting, rows...))
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// keep has the newest rows wait, and counts those that are too many. The caller holds mu.
func (s *Sink) keep(rows []demand.Row) {
	over := max(0, len(rows)-maxWaiting)
	s.waiting, s.lost = rows[over:], s.lost+over
}

func (s *Sink) run() {
	defer close(s.done)
	for range s.wake {
		_ = s.flush()
	}
}

// flush writes what waits.
func (s *Sink) flush() error {
	s.mu.Lock()
	rows := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	if len(rows) == 0 {
		return nil
	}
	err := s.o.write(s.o.Dir, rows)
	if err != nil && s.o.Failed != nil {
		s.o.Failed(err)
	}
	s.bound()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !onlyDamaged(err) {
		s.keep(append(rows, s.waiting...))
		return err
	}
	s.written += len(rows)
	return nil
}

// bound removes what is too old or too much.
func (s *Sink) bound() {
	kept, err := s.o.Keep.Do(s.o.Dir, s.rows.Names(), s.o.Now())
	if err != nil && s.o.Failed != nil {
		s.o.Failed(fmt.Errorf("older rows: %w", err))
	}
	s.mu.Lock()
	kept.Removed += s.kept.Removed
	s.kept = kept
	s.mu.Unlock()
	if s.o.Kept != nil {
		s.o.Kept(kept)
	}
}

// onlyDamaged reports whether the rows were written all the same.
func onlyDamaged(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, part := range joined.Unwrap() {
			if !onlyDamaged(part) {
				return false
			}
		}
		return true
	}
	return errors.As(err, new(*store.Damaged))
}

// Close ends the slot under way and writes it. now are the containers' last observations. written is how many rows were
// written in all. The error says which rows were not.
func (s *Sink) Close(now []observe.Observation) (written int, err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return s.written, nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.wake)
	<-s.done
	s.rowsMu.Lock()
	rest := s.rows.Finish()
	s.rowsMu.Unlock()
	s.mu.Lock()
	s.waiting = append(s.waiting, s.described(rest, now)...)
	s.mu.Unlock()
	err = s.flush()
	if s.lost > 0 {
		err = errors.Join(err, fmt.Errorf("%d rows waited too long for %s and are lost", s.lost, s.o.Dir))
	}
	return s.written, err
}

// Lost is how many rows could not be kept.
func (s *Sink) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Kept is what the node has in the folder since the last rows were written, and how many files went since New.
func (s *Sink) Kept() store.Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept
}
