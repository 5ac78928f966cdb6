package probe

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Errors of Watch and of methods that need a watched container.
var (
	// ErrFull means that Options.Containers containers are watched already.
	ErrFull = errors.New("no room to watch another container")
	// ErrNotWatched means that the container is not watched.
	ErrNotWatched = errors.New("the container is not watched")
	// ErrClosed means that the probe is closed.
	ErrClosed = errors.New("the probe is closed")
	// ErrBusy means that another recording runs; only one may run at a time.
	ErrBusy = errors.New("another recording runs; wait for its end")
)

// slots are the entries of watched containers in the kernel's arrays.
type slots struct {
	free []uint32 // first in, first out, so that a free slot is reused as late as possible
	byID map[uint64]*slot
	// byNumber has the same slots by number.
	byNumber []*slot
}

type slot struct {
	Container
	number  uint32
	handle  uint64 // 0 until the kernel knows the container
	sinceNS uint64
	// counting reports that the kernel has counted since sinceNS and knew by then which threads ran or wanted a CPU.
	counting bool
	// users counts one for Watch and one for each recording that names the container.
	users         int
	watchedByUser bool
}

func newSlots(n int) slots {
	s := slots{byID: map[uint64]*slot{}, byNumber: make([]*slot, n)}
	for i := range n {
		s.free = append(s.free, uint32(i))
	}
	return s
}

const (
	// beginDelay is how long newly watched containers are collected, so that a thousand of them cost one pass over all
	// threads.
	beginDelay = 2 * time.Millisecond
	// beginRetry is the time between two attempts to begin counting after a failure. Without it each read of a thousand
	// containers would begin all of them again.
	beginRetry = 100 * time.Millisecond
)

// Watch begins to count a container, after a short delay: Counts.SinceNS has the time. It does nothing for a watched
// container.
func (p *Probe) Watch(c Container) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots.byID[c.ID]; s != nil && s.watchedByUser {
		return nil
	}
	s, err := p.use(c)
	if err != nil {
		return err
	}
	s.watchedByUser = true
	return nil
}

// use takes a slot for a container, or shares its slot if it has one.
func (p *Probe) use(c Container) (*slot, error) {
	if p.closed {
		return nil, ErrClosed
	}
	if c.ID == 0 {
		return nil, fmt.Errorf("cannot watch %q: its cgroup id is 0", c.Path)
	}
	if s := p.slots.byID[c.ID]; s != nil {
		s.users++
		return s, nil
	}
	if len(p.slots.free) == 0 {
		return nil, fmt.Errorf("cannot watch %q: %w: %d are watched; Options.Containers sets how many", c.Path, ErrFull, len(p.slots.byID))
	}
	s := &slot{Container: c, number: p.slots.free[0], users: 1}
	p.slots.free = p.slots.free[1:]
	p.slots.byID[c.ID], p.slots.byNumber[s.number] = s, s
	p.fresh = append(p.fresh, c.ID)
	if p.beginTimer == nil {
		p.beginTimer = time.AfterFunc(beginDelay, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			_ = p.beginCounting() // Read tries again and returns the error
		})
	}
	return s, nil
}

// Unwatch ends counting a container. A recording that needs it continues to its end.
func (p *Probe) Unwatch(id uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots.byID[id]
	if s == nil || !s.watchedByUser {
		return ErrNotWatched
	}
	s.watchedByUser = false
	return p.drop(s)
}

// drop releases one use of a slot, and with the last use the slot.
func (p *Probe) drop(s *slot) error {
	if s.users--; s.users > 0 || p.closed {
		return nil
	}
	delete(p.slots.byID, s.ID)
	p.slots.byNumber[s.number] = nil
	p.slots.free = append(p.slots.free, s.number)
	p.fresh = slices.DeleteFunc(p.fresh, func(id uint64) bool { return id == s.ID })
	if s.handle == 0 {
		return nil
	}
	err := p.coll.Maps[bpfMapWatched].Delete(s.ID)
	// Without its handle no program counts in the slot, even one that still has the old handle.
	err = errors.Join(err, p.coll.Maps[bpfMapContainers].Put(s.number, &bpfContainer{}), p.invalidatePlaces())
	if err != nil {
		return fmt.Errorf("end watching %q: %w", s.Path, err)
	}
	return nil
}

// invalidatePlaces has the kernel side look up every task's container again.
func (p *Probe) invalidatePlaces() error {
	var generation uint32
	v := p.coll.Variables[bpfVarGeneration]
	if err := v.Get(&generation); err != nil {
		return err
	}
	return v.Set(generation + 1)
}

// beginCounting begins to count the newly watched containers: it names them to the kernel, then looks which threads run
// or want a CPU. After a failure a later call starts over. Until then the counts lack threads that ran already, and
// Read returns the error instead.
func (p *Probe) beginCounting() error {
	p.beginTimer = nil
	if len(p.fresh) == 0 || p.closed {
		return nil
	}
	now := time.Now()
	if p.beginErr != nil && now.Sub(p.triedAt) < beginRetry {
		return p.beginErr
	}
	if p.beginErr = p.tryCounting(); p.beginErr != nil {
		p.triedAt = now
		return p.beginErr
	}
	for _, id := range p.fresh {
		p.slots.byID[id].counting = true
	}
	p.fresh = nil
	return nil
}

// tryCounting is one attempt of beginCounting.
func (p *Probe) tryCounting() error {
	for _, id := range p.fresh {
		s := p.slots.byID[id]
		if err := p.begin(s); err != nil {
			return fmt.Errorf("watch %q: %w", s.Path, err)
		}
	}
	if err := p.invalidatePlaces(); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if err := p.syncCPUs(); err != nil {
		return err
	}
	return p.lookAtThreads(nil)
}

// begin empties a slot for a container and names it to the kernel.
func (p *Probe) begin(s *slot) error {
	p.serial++
	handle := uint64(p.serial)<<32 | uint64(s.number+1)
	now := monotonic()
	s.sinceNS = now &^ 15
	word := now >> 4 << 16
	c := bpfContainer{Handle: handle, Id: s.ID, WidthWord: word, WantedWord: word, StoppedWord: word, RowAt: s.sinceNS}
	if err := p.coll.Maps[bpfMapContainers].Put(s.number, &c); err != nil {
		return err
	}
	if err := p.coll.Maps[bpfMapUsages].Put(s.number, make([]bpfUsage, p.ncpu)); err != nil {
		return err
	}
	if err := p.coll.Maps[bpfMapWatched].Put(s.ID, handle); err != nil {
		return err
	}
	s.handle = handle
	return nil
}

// syncCPUs runs sync_cpu on every online CPU.
func (p *Probe) syncCPUs() error {
	for cpu := range p.ncpu {
		_, err := p.coll.Programs[bpfProgSyncCpu].Run(&ebpf.RunOptions{CPU: uint32(cpu), Flags: unix.BPF_F_TEST_RUN_ON_CPU})
		if err != nil && !errors.Is(err, unix.ENXIO) { // offline
			return refused("run a BPF program on a CPU", err)
		}
	}
	return nil
}

// monotonic reads the clock of bpf_ktime_get_ns.
func monotonic() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("CLOCK_MONOTONIC: " + err.Error()) // every Linux has it
	}
	return uint64(t.Nano())
}
