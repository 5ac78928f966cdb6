package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Record passes every scheduling event of one container, and the holders of the CPUs meanwhile, to sink, in order of
// time. It ends after o.For, with ctx, or with the first error of sink or Begin, which it returns.
//
// Begin gets what the probe knows about the start: clock, target, threads, features, kernel and CPUs. The caller adds
// limits, processes and machine. Record calls both from its own goroutine. While they are slow, events wait. In the end
// events are lost; the recording counts and reports them. One recording runs at a time: ErrBusy.
func (p *Probe) Record(ctx context.Context, o RecordOptions, sink func(*recording.Event) error) (recording.Footer, error) {
	if p.options.WidthOnly {
		return recording.Footer{}, errors.New("cannot record: the probe was opened with WidthOnly")
	}
	if o.For <= 0 || o.For > MaxRecording {
		return recording.Footer{}, fmt.Errorf("cannot record for %v: want more than 0 and at most %v", o.For, MaxRecording)
	}
	if sink == nil {
		return recording.Footer{}, errors.New("cannot record: sink is nil")
	}
	if !p.recording.TryLock() {
		return recording.Footer{}, ErrBusy
	}
	defer p.recording.Unlock()
	r := &recorder{p: p, o: o, sink: sink}
	footer, err := r.run(ctx)
	return footer, errors.Join(err, r.end())
}

// recorder is one recording.
type recorder struct {
	p           *Probe
	o           RecordOptions
	sink        func(*recording.Event) error
	ring        *ring
	target      *slot
	used        []*slot
	track       *tracker
	times       map[uint32]recording.ThreadTime // at the start
	notMeasured []string                        // what could not be measured
	// Events lost and switches without an event, on all CPUs, before the start.
	lostAt, unseenAt uint64
	before           snapshot
	sorted           order
	sockets          bool // the programs on sockets are attached
	// finishing reports that the end is about to be fixed, after which no event may be passed.
	finishing atomic.Bool
}

// run records.
func (r *recorder) run(ctx context.Context) (recording.Footer, error) {
	if err := r.start(); err != nil {
		return recording.Footer{}, err
	}
	draining, stop := context.WithCancel(context.Background())
	batches := make(chan batch, batchesWaiting)
	drained := make(chan error, 1)
	go r.p.measure(WorkRecording, func() { drained <- r.ring.drain(draining, batches) })
	defer func() {
		stop()
		for range batches {
		}
	}()

	header, err := r.startState()
	if err != nil {
		return recording.Footer{}, err
	}
	startNS := header.StartNS
	// The end runs beside the events: however long they take, the recording has the requested length.
	within, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	var footer recording.Footer
	var unfinished error
	go r.p.measure(WorkRecording, func() {
		defer close(ended)
		footer, unfinished = r.finishAfter(within, startNS)
	})
	defer func() {
		end()
		<-ended
	}()
	began := false
	upTo := func(before uint64) error {
		if !began && before > startNS {
			if err := r.sorted.take(startNS, r.track.on); err != nil {
				return err
			}
			began = true
			if err := r.begin(&header); err != nil {
				return err
			}
		}
		return r.sorted.take(before, r.track.on)
	}
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case b, ok := <-batches:
			if !ok {
				return recording.Footer{}, <-drained
			}
			if err := r.batch(b, upTo); err != nil {
				return recording.Footer{}, err
			}
		}
	}
	if unfinished != nil {
		return footer, unfinished
	}
	endNS := startNS + uint64(footer.EndNS)
	stop()
	for b := range batches {
		for _, e := range b.events {
			r.sorted.add(e)
		}
	}
	if err := <-drained; err != nil {
		return footer, err
	}
	if err := upTo(endNS); err != nil {
		return footer, err
	}
	r.complete(&footer)
	return footer, nil
}

func (r *recorder) batch(b batch, upTo func(uint64) error) error {
	for _, e := range b.events {
		r.sorted.add(e)
	}
	if !b.complete || b.upTo < reorderNS || r.finishing.Load() {
		return nil
	}
	return upTo(b.upTo - reorderNS)
}

// start takes what a recording needs and turns on the kernel's events.
func (r *recorder) start() error {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	var err error
	if r.target, err = p.use(r.o.Target); err != nil {
		return err
	}
	r.used = append(r.used, r.target)
	for _, s := range p.slots.byID {
		if s != r.target {
			s.users++ // it must keep its number until the end
			r.used = append(r.used, s)
		}
	}
	left := 0
	for _, c := range r.o.Others {
		if s := p.slots.byID[c.ID]; s != nil { // it may have been watched before it had a name
			s.Name, s.Path = cmp.Or(c.Name, s.Name), cmp.Or(c.Path, s.Path)
			continue
		}
		s, err := p.use(c)
		if err != nil {
			left++
			continue
		}
		r.used = append(r.used, s)
	}
	if left > 0 {
		r.notMeasured = append(r.notMeasured, fmt.Sprintf("neighbours: %d containers appear as processes, because "+
			"Options.Containers leaves no room to watch them", left))
	}
	if err := p.beginCounting(); err != nil {
		return err
	}
	if r.ring, err = p.newRing(); err != nil {
		return err
	}
	if err := errors.Join(p.fillAncestors(r.o), empty[uint32, uint32](p.coll.Maps[bpfMapProcesses])); err != nil {
		return fmt.Errorf("prepare a recording: %w", err)
	}
	for _, name := range whileRecording {
		if err := p.attach(name); err != nil {
			return err
		}
	}
	if err := r.startSockets(); err != nil {
		return err
	}
	r.lostAt, r.unseenAt, err = p.lost()
	if err != nil {
		return err
	}
	var epoch uint32
	if err := p.coll.Variables[bpfVarEpoch].Get(&epoch); err != nil {
		return err
	}
	return errors.Join(p.coll.Variables[bpfVarEpoch].Set(epoch+1), p.coll.Variables[bpfVarRecorded].Set(r.target.handle))
}

// startSockets attaches the programs on sockets. If the kernel refuses them, the recording says so and has none.
func (r *recorder) startSockets() error {
	p := r.p
	if !p.kernel.sockets {
		return nil
	}
	if err := p.coll.Variables[bpfVarConnected].Set(uint64(0)); err != nil {
		return err
	}
	for _, name := range onSockets {
		if err := p.attach(name); err != nil {
			r.notMeasured = append(r.notMeasured, fmt.Sprintf("requests: %v", err))
			return p.detach(onSockets...)
		}
	}
	r.sockets = true
	return nil
}

// startState finds the state at the start. Events run already: those from before the start correct threads whose state
// changed meanwhile.
func (r *recorder) startState() (recording.Header, error) {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	r.track = newTracker(r.container)
	r.times = map[uint32]recording.ThreadTime{}
	err := p.lookAtThreads(func(row *bpfThreadRow) {
		r.track.row(row)
		r.times[row.Tid] = recording.ThreadTime{TID: row.Tid, UserNS: int64(row.Utime), KernelNS: int64(row.Stime)}
	})
	if err != nil {
		return recording.Header{}, err
	}
	if err := p.syncCPUs(); err != nil {
		return recording.Header{}, err
	}
	features := p.Features()
	features.Sockets = r.sockets
	h := recording.Header{
		Version:  recording.Version,
		Target:   recording.Target{Path: r.o.Target.Path, ID: r.o.Target.ID, Name: r.o.Target.Name},
		Features: features, Recorder: p.process(),
	}
	if r.before, err = r.snapshot(); err != nil {
		return h, err
	}
	h.StartNS, h.Created = r.before.counts.AtNS, r.before.wall
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Host.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if h.Host.CPUs, err = onlineCPUs(); err != nil {
		r.notMeasured = append(r.notMeasured, fmt.Sprintf("CPUs online: %v", err))
	}
	return h, nil
}

// process is the number of this process in the events: that of the root's PID namespace, whose /proc the probe reads. 0: not known.
func (p *Probe) process() uint32 {
	self, err := os.Readlink(filepath.Join(p.options.Proc, "self"))
	if err != nil {
		return 0
	}
	pid, err := strconv.ParseUint(self, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(pid)
}

// container returns the container of a slot number + 1.
func (r *recorder) container(number uint32) *Container {
	i := slices.IndexFunc(r.used, func(s *slot) bool { return s.number+1 == number })
	if i < 0 {
		return nil
	}
	return &r.used[i].Container
}

// begin passes the header and the state at the start.
func (r *recorder) begin(h *recording.Header) error {
	h.Threads = r.track.snapshot()
	h.NotMeasured = append(h.NotMeasured, r.notMeasured...)
	if r.o.Begin != nil {
		if err := r.o.Begin(h); err != nil {
			return err
		}
	}
	return r.track.begin(h.StartNS, r.sink)
}

// finishAfter finishes the recording when its time is over or ctx ends.
func (r *recorder) finishAfter(ctx context.Context, startNS uint64) (recording.Footer, error) {
	over := time.NewTimer(r.o.For - time.Duration(monotonic()-startNS))
	defer over.Stop()
	select {
	case <-ctx.Done():
	case <-over.C:
	}
	r.finishing.Store(true)
	return r.finish(startNS)
}

// finish reads the counters of the end while events still run.
func (r *recorder) finish(startNS uint64) (recording.Footer, error) {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	after, err := r.snapshot()
	if err != nil {
		return recording.Footer{}, err
	}
	f := recording.Footer{EndNS: int64(after.counts.AtNS - startNS)}
	r.before.upTo(after, &f, r.used)
	err = p.lookAtThreads(func(row *bpfThreadRow) {
		r.addTime(&f, recording.ThreadTime{TID: row.Tid, UserNS: int64(row.Utime), KernelNS: int64(row.Stime)})
	})
	err = errors.Join(err, p.coll.Variables[bpfVarRecorded].Set(uint64(0)))
	if err != nil {
		return f, fmt.Errorf("end a recording: %w", err)
	}
	lost, unseen, err := p.lost()
	f.LostEvents, f.UnseenSwitches = lost-r.lostAt, unseen-r.unseenAt
	return f, err
}

// maxThreadTimes is how many threads' times a recording keeps, including those that ended. A diagnosis keeps as many
// threads.
const maxThreadTimes = 1 << 16

// addTime adds a thread's use since the start.
func (r *recorder) addTime(f *recording.Footer, end recording.ThreadTime) {
	start := r.times[end.TID]
	end.UserNS -= start.UserNS
	end.KernelNS -= start.KernelNS
	if end.UserNS < 0 || end.KernelNS < 0 { // another thread has the number now
		return
	}
	if len(f.Threads) == maxThreadTimes {
		return
	}
	f.Threads = append(f.Threads, end)
}

// complete adds what only the events show.
func (r *recorder) complete(f *recording.Footer) {
	have := make(map[uint32]bool, len(f.Threads))
	for _, t := range f.Threads {
		have[t.TID] = true
	}
	for tid, t := range r.track.times {
		if !have[tid] {
			r.addTime(f, t)
		}
	}
	slices.SortFunc(f.Threads, func(a, b recording.ThreadTime) int { return int(a.TID) - int(b.TID) })
	for i := range f.Neighbours {
		s := f.Neighbours[i].Owner // its slot's number + 1, until here
		f.Neighbours[i].Owner = r.track.owners[uint64(bpfHolderKindHOLDER_CONTAINER)<<32|uint64(s)]
	}
	f.Neighbours = slices.DeleteFunc(f.Neighbours, func(n recording.Neighbour) bool { return n.Owner == 0 })
}

// end releases everything, also after a failure.
func (r *recorder) end() error {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	var failed error
	if !p.closed {
		failed = errors.Join(p.coll.Variables[bpfVarRecorded].Set(uint64(0)), p.detach(whileRecording...), p.detach(onSockets...))
		if r.ring != nil {
			failed = errors.Join(failed, p.endRing(r.ring))
		}
	}
	for _, s := range r.used {
		failed = errors.Join(failed, p.drop(s))
	}
	return failed
}
