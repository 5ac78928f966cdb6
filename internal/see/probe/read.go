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
	if p.closed {
		return Counts{}, ErrClosed
	}
	s := p.slots.byID[id]
	if s == nil {
		return Counts{}, ErrNotWatched
	}
	return p.read(s)
}

func (p *Probe) read(s *slot) (Counts, error) {
	if !s.counting {
		if err := p.beginCounting(); err != nil {
			return Counts{}, err
		}
	}
	var c bpfContainer
	out := Counts{SinceNS: s.sinceNS}
	for try := 0; ; try++ {
		still, all, err := p.readAt(s, &out, &c)
		if err != nil {
			return Counts{}, fmt.Errorf("read %q: %w", s.Path, err)
		}
		exact := all && heldTo(&out, c.WidthWord, c.Width[:]) && heldTo(&out, c.WantedWord, c.Wanted[:]) && heldTo(&out, c.StoppedWord, c.Stopped[:])
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
	out.WidthNS, out.Width = upTo(&out, withOwed(c.WidthWord, c.WidthOwed), c.Width[:])
	if p.options.WidthOnly {
		return out, nil
	}
	out.WantedNS, out.Wanted = upTo(&out, withOwed(c.WantedWord, c.WantedOwed), c.Wanted[:])
	if p.Features().Mark == "" {
		return out, nil
	}
	stopped, n := upTo(&out, withOwed(c.StoppedWord, c.StoppedOwed), c.Stopped[:])
	var ns int64
	if len(stopped) > 1 {
		ns = stopped[1]
	}
	out.StoppedNS, out.StoppedIntervals, out.Stopped = &ns, &c.StoppedIntervals, n > 0
	return out, nil
}

// heldTo says whether a word's count has held until c.AtNS, and its histogram sums to the time between c.SinceNS and the
// word's.
func heldTo(c *Counts, word uint64, histogram []uint64) bool {
	var sum uint64
	for _, ns := range histogram {
		sum += ns
	}
	to := elapsed(word, c.SinceNS)
	return sum == to && to <= c.AtNS-c.SinceNS
}

// elapsed returns the time from since to a word's, which has only 48 bits of it.
func elapsed(word, since uint64) uint64 { return (word>>16 - since>>4) & wordTime << 4 }

// withOwed adds to a word what it is owed, as change in bpf/count.h does: its count stays within 16 bits.
func withOwed(word uint64, owed int64) uint64 {
	count := min(max(int64(word&wordCount)+owed, 0), wordCount)
	return word&^wordCount | uint64(count)
}

// upTo closes a histogram at c.AtNS, because its count has held since its last change. It cuts off empty levels at the
// end.
func upTo(c *Counts, word uint64, histogram []uint64) ([]int64, int) {
	count := int(word & wordCount)
	level := min(count, len(histogram)-1)
	open := int64(c.AtNS-c.SinceNS) - int64(elapsed(word, c.SinceNS))
	last := level
	for i, ns := range histogram {
		if ns > 0 {
			last = max(last, i)
		}
	}
	out := make([]int64, last+1)
	for i := range out {
		out[i] = int64(histogram[i])
	}
	out[level] += max(open, 0)
	return out, count
}

// readAt reads a container's words and histograms, right after c.AtNS. It adds the CPUs' notes until then and the time
// that CPUs which hold the container have not booked yet. still is false if a CPU switched meanwhile. all is false if a
// CPU may have read an earlier clock and not be done.
func (p *Probe) readAt(s *slot, c *Counts, from *bpfContainer) (still, all bool, err error) {
	usages := make([]bpfUsage, p.ncpu)
	before := make([]cpuState, p.ncpu)
	after := make([]cpuState, p.ncpu)
	if err := p.readCPUs(before); err != nil {
		return false, false, err
	}
	if err := p.coll.Maps[bpfMapUsages].Lookup(s.number, &usages); err != nil {
		return false, false, err
	}
	c.AtNS = monotonic() &^ 15
	if all, err = p.finished(); err != nil {
		return false, false, err
	}
	if err := p.coll.Maps[bpfMapContainers].Lookup(s.number, from); err != nil {
		return false, false, err
	}
	if err := p.readCPUs(after); err != nil {
		return false, false, err
	}
	c.OnCPU, c.OnCPUNS = map[int]int64{}, 0
	for cpu, u := range usages {
		ns := int64(u.Ns)
		if h := before[cpu]; h.handle == s.handle && h.since < c.AtNS {
			ns += int64(c.AtNS - h.since)
		}
		if ns > 0 {
			c.OnCPU[cpu] = ns
		}
		c.OnCPUNS += ns
	}
	return sameHolders(before, after, s.handle), all, nil
}

// finished reports whether every CPU was seen outside the programs, or finished one, since the call. Then every program
// that read the clock before has counted.
func (p *Probe) finished() (bool, error) {
	first, now := make([]cpuState, p.ncpu), make([]cpuState, p.ncpu)
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
	buf := make([]byte, size*len(into))
	if _, err := p.cpus.ReadAt(buf, 0); err != nil {
		return err
	}
	for i := range into {
		cpu := buf[i*size:]
		into[i] = cpuState{
			handle: binary.LittleEndian.Uint64(cpu[unsafe.Offsetof(bpfCpu{}.Handle):]), since: binary.LittleEndian.Uint64(cpu[unsafe.Offsetof(bpfCpu{}.Since):]),
			inside: binary.LittleEndian.Uint32(cpu[unsafe.Offsetof(bpfCpu{}.Inside):]), finished: binary.LittleEndian.Uint32(cpu[unsafe.Offsetof(bpfCpu{}.Finished):]),
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
