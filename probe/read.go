package probe

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

const (
	wordCount = 1<<16 - 1
	wordTime  = 1<<48 - 1
	// A container is read while it is counted in: this often, until what was read agrees with itself.
	readTries = 50
)

// Read tells what was counted of a container since it is watched.
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
	if s.handle == 0 {
		if err := p.settle(); err != nil {
			return Counts{}, err
		}
	}
	var c bpfContainer
	out := Counts{SinceNS: s.sinceNS}
	for range readTries {
		if err := p.coll.Maps[bpfMapContainers].Lookup(s.number, &c); err != nil {
			return Counts{}, fmt.Errorf("read %q: %w", s.Path, err)
		}
		held, err := p.readUsage(s, &out)
		if err != nil {
			return Counts{}, fmt.Errorf("read %q: %w", s.Path, err)
		}
		// The words' counts are taken to hold until AtNS: whatever they changed in between would be lost.
		var later bpfContainer
		if err := p.coll.Maps[bpfMapContainers].Lookup(s.number, &later); err != nil {
			return Counts{}, fmt.Errorf("read %q: %w", s.Path, err)
		}
		if held && c.WidthWord == later.WidthWord && c.WantedWord == later.WantedWord && c.StoppedWord == later.StoppedWord &&
			agrees(c.WidthWord, s.sinceNS, c.Width[:]) && agrees(c.WantedWord, s.sinceNS, c.Wanted[:]) &&
			agrees(c.StoppedWord, s.sinceNS, c.Stopped[:]) {
			break
		}
	}
	out.WidthNS, out.Width = upTo(&out, c.WidthWord, c.Width[:])
	if p.options.WidthOnly {
		return out, nil
	}
	out.WantedNS, out.Wanted = upTo(&out, c.WantedWord, c.Wanted[:])
	if p.Features().Mark == "" {
		return out, nil
	}
	stopped, n := upTo(&out, c.StoppedWord, c.Stopped[:])
	var ns int64
	if len(stopped) > 1 {
		ns = stopped[1]
	}
	out.StoppedNS, out.StoppedSpells, out.Stopped = &ns, &c.Spells, n > 0
	return out, nil
}

// agrees says whether a histogram sums to the time between since and its word.
func agrees(word, since uint64, histogram []uint64) bool {
	var sum uint64
	for _, ns := range histogram {
		sum += ns
	}
	return sum == elapsed(word, since)
}

// elapsed is the time from since to a word's, which knows 48 bits of it only.
func elapsed(word, since uint64) uint64 { return (word>>16 - since>>4) & wordTime << 4 }

// upTo closes a histogram at c.AtNS: from its last change on its count has held. Empty levels at the end are cut off.
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

// readUsage adds up what the CPUs noted, with what those that hold the container have not booked yet, up to c.AtNS;
// false: a CPU changed hands meanwhile.
func (p *Probe) readUsage(s *slot, c *Counts) (bool, error) {
	usages := make([]bpfUsage, p.ncpu)
	before := make([]cpuHold, p.ncpu)
	after := make([]cpuHold, p.ncpu)
	if err := p.readHolds(before); err != nil {
		return false, err
	}
	if err := p.coll.Maps[bpfMapUsages].Lookup(s.number, &usages); err != nil {
		return false, err
	}
	if err := p.readHolds(after); err != nil {
		return false, err
	}
	c.AtNS = monotonic() &^ 15
	c.OnCPU, c.OnCPUNS = map[int]int64{}, 0
	for cpu, u := range usages {
		ns := int64(u.Ns)
		if h := after[cpu]; h.handle == s.handle && h.since < c.AtNS {
			ns += int64(c.AtNS - h.since)
		}
		if ns > 0 {
			c.OnCPU[cpu] = ns
		}
		c.OnCPUNS += ns
	}
	return sameHolds(before, after, s.handle), nil
}

// cpuHold is which container holds a CPU, since when.
type cpuHold struct{ handle, since uint64 }

func (p *Probe) readHolds(into []cpuHold) error {
	const size = unsafe.Sizeof(bpfCpu{})
	buf := make([]byte, int(size)*len(into))
	if _, err := p.cpus.ReadAt(buf, 0); err != nil {
		return err
	}
	for i := range into {
		at := i * int(size)
		into[i] = cpuHold{binary.LittleEndian.Uint64(buf[at:]), binary.LittleEndian.Uint64(buf[at+8:])}
	}
	return nil
}

func sameHolds(a, b []cpuHold, handle uint64) bool {
	for i := range a {
		if a[i] != b[i] && (a[i].handle == handle || b[i].handle == handle) {
			return false
		}
	}
	return true
}
