package probe

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Errors of Watch and those that need a watched container.
var (
	// ErrFull: as many containers are watched as Options.Containers allows.
	ErrFull = errors.New("no room to watch another container")
	// ErrNotWatched: the container is not watched.
	ErrNotWatched = errors.New("the container is not watched")
	// ErrClosed: the probe is closed.
	ErrClosed = errors.New("the probe is closed")
	// ErrBusy: a recording runs, of which there is one at a time.
	ErrBusy = errors.New("another recording runs")
)

// slots are the places of watched containers in the kernel's arrays.
type slots struct {
	free []uint32 // first in, first out: a slot rests before it is used again
	byID map[uint64]*slot
	// byNumber is the same by slot number.
	byNumber []*slot
}

type slot struct {
	Container
	number  uint32
	handle  uint64 // 0: the kernel does not know it yet
	sinceNS uint64
	// settled: the kernel has counted it since sinceNS, and had seen by then who ran and who wanted to.
	settled bool
	// users: Watch counts as one, each recording that names it as another.
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
	// settleAfter is how long newly watched containers are collected, so that a thousand of them cost one look at all
	// threads.
	settleAfter = 2 * time.Millisecond
	// settleAgain is how long a failure to settle is told before it is tried again: each of a thousand containers that is
	// read would else begin all of them anew.
	settleAgain = 100 * time.Millisecond
)

// Watch counts a container from now on, or rather from a moment later: Counts.SinceNS says. Watching one that is
// watched already changes nothing.
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

// use takes a slot for a container, or shares the one that it has.
func (p *Probe) use(c Container) (*slot, error) {
	if p.closed {
		return nil, ErrClosed
	}
	if c.ID == 0 {
		return nil, fmt.Errorf("cannot watch %q: it has no cgroup id", c.Path)
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
	if p.settler == nil {
		p.settler = time.AfterFunc(settleAfter, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			_ = p.settle() // Read tries again, and says why it cannot
		})
	}
	return s, nil
}

// Unwatch ends counting a container. What a recording needs of it goes on until that ends.
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

// drop gives back a use of a slot, with the last one the slot.
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
	// Without its handle nothing is counted in the slot, whoever still remembers it.
	err = errors.Join(err, p.coll.Maps[bpfMapContainers].Put(s.number, &bpfContainer{}), p.replace())
	if err != nil {
		return fmt.Errorf("end watching %q: %w", s.Path, err)
	}
	return nil
}

// replace has every task's place looked up anew.
func (p *Probe) replace() error {
	var generation uint32
	v := p.coll.Variables[bpfVarGeneration]
	if err := v.Get(&generation); err != nil {
		return err
	}
	return v.Set(generation + 1)
}

// settle begins to count in what was newly watched: makes it known, then looks who runs and who wants to. What it could
// not do it does again later, from the start: until then counts lack who ran already, and are not told.
func (p *Probe) settle() error {
	p.settler = nil
	if len(p.fresh) == 0 || p.closed {
		return nil
	}
	now := time.Now()
	if p.unsettled != nil && now.Sub(p.triedAt) < settleAgain {
		return p.unsettled
	}
	if p.unsettled = p.settleFresh(); p.unsettled != nil {
		p.triedAt = now
		return p.unsettled
	}
	for _, id := range p.fresh {
		p.slots.byID[id].settled = true
	}
	p.fresh = nil
	return nil
}

// settleFresh is one try of settle.
func (p *Probe) settleFresh() error {
	for _, id := range p.fresh {
		s := p.slots.byID[id]
		if err := p.begin(s); err != nil {
			return fmt.Errorf("watch %q: %w", s.Path, err)
		}
	}
	if err := p.replace(); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if err := p.syncCPUs(); err != nil {
		return err
	}
	return p.lookAtThreads(nil)
}

// begin empties a slot for a container and names it in the kernel.
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

// syncCPUs runs sync_cpu on every CPU that is online.
func (p *Probe) syncCPUs() error {
	for cpu := range p.ncpu {
		_, err := p.coll.Programs[bpfProgSyncCpu].Run(&ebpf.RunOptions{CPU: uint32(cpu), Flags: unix.BPF_F_TEST_RUN_ON_CPU})
		if err != nil && !errors.Is(err, unix.ENXIO) { // offline
			return refused("run a BPF program on a CPU", err)
		}
	}
	return nil
}

// monotonic is the clock of bpf_ktime_get_ns.
func monotonic() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("CLOCK_MONOTONIC: " + err.Error()) // every Linux has it
	}
	return uint64(t.Nano())
}
