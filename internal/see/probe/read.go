package probe

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"
)

const (
	wordCount = 1<<16 - 1
	wordTime  = 1<<48 - 1
	// mostLate is LATE of bpf/count.h.
	mostLate = 1 << 32
	// A container is read while programs count in it. stillTries bounds the attempts to find a moment in which no CPU
	// switches. After them Read looks for a moment in which the histograms are exact, which is shorter; readTries
	// bounds all attempts.
	stillTries = 50
	readTries  = 500
	// finishLooks is how often a CPU in the middle of counting is polled; that outlasts a program. If it takes longer,
	// a hypervisor took the CPU away, and the container is read again after a while.
	finishLooks = 100
	finishWait  = 200 * time.Microsecond
)

// Read returns the counts of a container since it was watched. If the kernel did not let the probe see which threads
// ran at the begin, Read returns the kernel's error. A later Read tries again.
func (p *Probe) Read(id uint64) (Counts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.watched(id)
	if err != nil {
		return Counts{}, err
	}
	return p.read(s)
}

// ReadInto is Read without OnCPU and OnCPUNS, which take a look-up of their own. It reuses the memory of into, so that
// a round over many containers allocates nothing. After an error into is not to be used.
func (p *Probe) ReadInto(id uint64, into *Counts) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.watched(id)
	if err != nil {
		return err
	}
	return p.readInto(s, into, false)
}

func (p *Probe) watched(id uint64) (*slot, error) {
	if p.closed {
		return nil, ErrClosed
	}
	s := p.slots.byID[id]
	if s == nil {
		return nil, ErrNotWatched
	}
	return s, nil
}

func (p *Probe) read(s *slot) (c Counts, err error) {
	err = p.readInto(s, &c, true)
	return c, err
}

func (p *Probe) readInto(s *slot, out *Counts, perCPU bool) error {
	if !s.counting {
		if err := p.beginCounting(); err != nil {
			return err
		}
	}
	c := &p.reading.container
	*out = Counts{SinceNS: s.sinceNS, WidthNS: out.WidthNS, WantedNS: out.WantedNS, StoppedNS: out.StoppedNS,
		StoppedIntervals: out.StoppedIntervals}
	for try := 0; ; try++ {
		still, all, err := p.readAt(s, out, perCPU)
		if err != nil {
			return fmt.Errorf("read %q: %w", s.Path, err)
		}
		exact := all && heldTo(out, c.WidthWord, c.Width[:]) && heldTo(out, c.WantedWord, c.Wanted[:]) &&
			heldTo(out, c.StoppedWord, c.Stopped[:])
		if exact && (still || try >= stillTries) {
			break
		}
		if try == readTries {
			p.inexact++
			out.Inexact = true
			break
		}
		if !all {
			time.Sleep(finishWait)
		}
	}
	out.LateNS, out.StoppedLateNS = c.Late+c.StoppedLate, c.StoppedLate
	out.WidthNS, out.Width = upTo(out, out.WidthNS, withOwed(c.WidthWord, c.WidthOwed), c.Width[:])
	if p.options.WidthOnly {
		out.WantedNS, out.StoppedNS, out.StoppedIntervals = nil, nil, nil
		return nil
	}
	out.WantedNS, out.Wanted = upTo(out, out.WantedNS, withOwed(c.WantedWord, c.WantedOwed), c.Wanted[:])
	if p.mark == "" {
		out.StoppedNS, out.StoppedIntervals = nil, nil
		return nil
	}
	ns, n := stopped(out, c)
	if out.StoppedNS == nil || out.StoppedIntervals == nil {
		out.StoppedNS, out.StoppedIntervals = new(int64), new(uint64)
	}
	*out.StoppedNS, *out.StoppedIntervals, out.Stopped = ns, c.StoppedIntervals, n > 0
	if !out.Inexact && out.Width+out.Wanted+n == 0 {
		out.IdleNS = uint64(max(min(age(c.WidthWord, out.AtNS), age(c.WantedWord, out.AtNS), age(c.StoppedWord, out.AtNS)), 0))
	}
	return nil
}

// stopped returns for how long a quota has held the container back until out.AtNS, and on how many queues it does then.
func stopped(out *Counts, c *bpfContainer) (ns int64, queues int) {
	word := withOwed(c.StoppedWord, c.StoppedOwed)
	queues = int(word & wordCount)
	ns = int64(c.Stopped[1])
	if queues > 0 {
		ns += max(age(word, out.AtNS), 0)
	}
	return ns, queues
}

// heldTo says whether a word's count has held until c.AtNS, and its histogram sums to the time between c.SinceNS and the
// word's.
func heldTo(c *Counts, word uint64, histogram []uint64) bool {
	var sum uint64
	for _, ns := range histogram {
		sum += ns
	}
	return (sum-elapsed(word, c.SinceNS, c.AtNS))&(wordTime<<4) == 0 && age(word, c.AtNS) >= 0
}

// age is for how long a word's count has held at a time; below 0: it changed after it. The word has 48 bits of time, in
// 16 ns: one that did not change for 52 days or more looks younger by a multiple of that, and in the minute before as if it changed later.
func age(word, at uint64) int64 {
	units := (at>>4 - word>>16) & wordTime
	if late := wordTime + 1 - units; late < mostLate {
		return -int64(late << 4)
	}
	return int64(units << 4)
}

// elapsed is the time from since to a word's, as seen at a later time.
func elapsed(word, since, at uint64) uint64 { return (at>>4-since>>4)<<4 - uint64(age(word, at)) }

// withOwed adds to a word what it is owed, as change in bpf/count.h does: its count stays within 16 bits.
func withOwed(word uint64, owed int64) uint64 {
	count := min(max(int64(word&wordCount)+owed, 0), wordCount)
	return word&^wordCount | uint64(count)
}

// upTo closes a histogram at c.AtNS, because its count has held since its last change. It cuts off empty levels at the
// end, and uses the memory of into.
func upTo(c *Counts, into []int64, word uint64, histogram []uint64) ([]int64, int) {
	count := int(word & wordCount)
	level := min(count, len(histogram)-1)
	open := age(word, c.AtNS)
	last := level
	for i, ns := range histogram {
		if ns > 0 {
			last = max(last, i)
		}
	}
	out := into[:0]
	for _, ns := range histogram[:last+1] {
		out = append(out, int64(ns))
	}
	out[level] += max(open, 0)
	return out, count
}

// reading is the memory of a read, reused by the next one. Probe.mu guards it.
type reading struct {
	container     bpfContainer
	usages        []bpfUsage
	before, after []cpuState
	first, now    []cpuState
	cpus          []byte
}

func newReading(ncpu int) *reading {
	return &reading{
		usages: make([]bpfUsage, ncpu), before: make([]cpuState, ncpu), after: make([]cpuState, ncpu),
		first: make([]cpuState, ncpu), now: make([]cpuState, ncpu), cpus: make([]byte, ncpu*int(unsafe.Sizeof(bpfCpu{}))),
	}
}

// readAt reads a container's words and histograms into p.reading, right after c.AtNS. With perCPU it adds the CPUs'
// notes until then and the time that CPUs which hold the container have not booked yet. still is false if a CPU switched
// meanwhile. all is false if a CPU may have read an earlier clock and not be done.
func (p *Probe) readAt(s *slot, c *Counts, perCPU bool) (still, all bool, err error) {
	r := p.reading
	if err := p.readCPUs(r.before); err != nil {
		return false, false, err
	}
	if perCPU {
		if err := p.coll.Maps[bpfMapUsages].Lookup(s.number, &r.usages); err != nil {
			return false, false, err
		}
	}
	c.AtNS = monotonic() &^ 15
	if all, err = p.finished(); err != nil {
		return false, false, err
	}
	if err := p.coll.Maps[bpfMapContainers].Lookup(s.number, &r.container); err != nil {
		return false, false, err
	}
	if err := p.readCPUs(r.after); err != nil {
		return false, false, err
	}
	if perCPU {
		c.OnCPU, c.OnCPUNS = map[int]int64{}, 0
		for cpu, u := range r.usages {
			ns := int64(u.Ns)
			if h := r.before[cpu]; h.handle == s.handle && h.since < c.AtNS {
				ns += int64(c.AtNS - h.since)
			}
			if ns > 0 {
				c.OnCPU[cpu] = ns
			}
			c.OnCPUNS += ns
		}
	}
	return sameHolders(r.before, r.after, s.handle), all, nil
}

// finished reports whether every CPU was seen outside the programs, or finished one, since the call. Then every program
// that read the clock before has counted.
func (p *Probe) finished() (bool, error) {
	first, now := p.reading.first, p.reading.now
	if err := p.readCPUs(first); err != nil {
		return false, err
	}
	copy(now, first)
	for range finishLooks {
		if allFinished(first, now) {
			return true, nil
		}
		if err := p.readCPUs(now); err != nil {
			return false, err
		}
	}
	return false, nil
}

func allFinished(first, now []cpuState) bool {
	for i, was := range first {
		if was.inside > 0 && now[i].inside > 0 && now[i].finished == was.finished {
			return false
		}
	}
	return true
}

// cpuState is which container holds a CPU and since when, how many programs count there now, and how many have done so.
type cpuState struct {
	handle, since    uint64
	inside, finished uint32
}

func (p *Probe) readCPUs(into []cpuState) error {
	const size = int(unsafe.Sizeof(bpfCpu{}))
	buf := p.reading.cpus
	if _, err := p.cpus.ReadAt(buf, 0); err != nil {
		return err
	}
	for i := range into {
		cpu := buf[i*size:]
		into[i] = cpuState{
			handle:   binary.LittleEndian.Uint64(cpu[unsafe.Offsetof(bpfCpu{}.Handle):]),
			since:    binary.LittleEndian.Uint64(cpu[unsafe.Offsetof(bpfCpu{}.Since):]),
			inside:   binary.LittleEndian.Uint32(cpu[unsafe.Offsetof(bpfCpu{}.Inside):]),
			finished: binary.LittleEndian.Uint32(cpu[unsafe.Offsetof(bpfCpu{}.Finished):]),
		}
	}
	return nil
}

func sameHolders(a, b []cpuState, handle uint64) bool {
	for i := range a {
		same := a[i].handle == b[i].handle && a[i].since == b[i].since
		if !same && (a[i].handle == handle || b[i].handle == handle) {
			return false
		}
	}
	return true
}
