package observe

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
)

// Widths is the part of the probe that a Sampler reads; *probe.Probe implements it.
type Widths interface {
	// Watch begins to count a container, Unwatch ends it; ReadInto tells what was counted since, and reuses the memory.
	Watch(counts.Container) error
	Unwatch(id uint64) error
	ReadInto(id uint64, into *counts.Counts) error
}

// Probe counts what the kernel's scheduler does, and tells of each period; *probe.Probe is one.
type Probe interface {
	Widths
	// PeriodRows gives a row per period and watched container until ctx ends.
	PeriodRows(ctx context.Context, sink func(counts.PeriodRow) error) error
}

// counting holds the containers that the probe counts for a Sampler.
type counting struct {
	probe Widths
	host  *cgroup.Host
	known map[uint64]*counted // by LevelSample.ID, which costs no extra system call
}

// counted is one container that the probe watches.
type counted struct {
	id    uint64 // the cgroup's
	round uint64 // the last one in which it existed
}

// read reads the probe's counts of a container that is counted already, by its key in known.
func (w *counting) read(dst *Sample, key, round uint64) {
	this := w.known[key]
	if w.probe == nil || this == nil {
		return
	}
	if dst.memory == nil {
		dst.memory = new(counts.Counts)
	}
	this.round = round
	dst.cgroupID = this.id
	if err := w.probe.ReadInto(this.id, dst.memory); err != nil {
		dst.missing("width: " + err.Error())
		return
	}
	dst.counts = dst.memory
}

// begin begins the watch of a container that is not counted yet, and reads its first counts.
func (w *counting) begin(dst *Sample, c *container.Container, round uint64) {
	key := dst.Levels[0].ID
	if w.probe == nil {
		return
	}
	if this := w.known[key]; this != nil && this.round == round && dst.cgroupID == this.id {
		return
	}
	if _, err := w.watch(key, c); err != nil {
		dst.missing("width: " + err.Error())
		return
	}
	dst.counts = nil
	w.read(dst, key, round)
}

func (w *counting) watch(key uint64, c *container.Container) (*counted, error) {
	if this := w.known[key]; this != nil {
		return this, nil
	}
	if key == 0 {
		return nil, errors.New("the cgroup has no inode, so it cannot be distinguished from a later one under its path")
	}
	id, err := w.host.ID(cgroup.CPU, c.Group.Path)
	if err != nil {
		return nil, err
	}
	if err := w.probe.Watch(counts.Container{ID: id, Path: c.Group.Path, Name: c.Name}); err != nil {
		return nil, err
	}
	this := &counted{id: id}
	w.known[key] = this
	return this, nil
}

// sweep has the probe drop containers that this round did not sample.
func (w *counting) sweep(round uint64) {
	for key, this := range w.known {
		if this.round != round {
			// The cgroup is gone or no longer sampled. It does not matter whether the probe still knew it.
			_ = w.probe.Unwatch(this.id)
			delete(w.known, key)
		}
	}
}

// exactPart is the part of the window by which the probe may count late while stopped time still counts as exact. It is
// a millisecond of a second, the unit in which views show stopped time.
const exactPart = 1000

// exact replaces bounds by what the probe counted between the two samples. A hypervisor that takes a CPU away while it
// counts makes stops begin or end late there: stopped time is then as counted, less or more what was late
// (counts.Counts.StoppedLateNS). The counters' bounds stay, and the result is false, where a sample's counts themselves
// are not exact.
func (o *Observation) exact(prev, cur *counts.Counts) bool {
	if prev == nil || cur == nil || prev.SinceNS != cur.SinceNS || cur.AtNS <= prev.AtNS {
		return false
	}
	o.Width, o.Wanted = between(prev.WidthNS, cur.WidthNS), between(prev.WantedNS, cur.WantedNS)
	if prev.StoppedNS == nil || cur.StoppedNS == nil || prev.Inexact || cur.Inexact {
		return false
	}
	// The probe and the counters are read microseconds apart, so cut to the window.
	stopped := min(max(0, time.Duration(*cur.StoppedNS-*prev.StoppedNS)), o.Window)
	late := time.Duration(cur.StoppedLateNS - prev.StoppedLateNS)
	if o.StoppedExact = late <= o.Window/exactPart; o.StoppedExact {
		late = 0
	}
	o.StoppedLow, o.StoppedHigh = new(max(0, stopped-late)), new(min(stopped+late, o.Window))
	if prev.StoppedIntervals != nil && cur.StoppedIntervals != nil {
		o.StoppedIntervals = new(*cur.StoppedIntervals - *prev.StoppedIntervals)
	}
	return true
}

// between returns the gain of a histogram without empty levels at its end; nil if it was not measured. The probe
// returns no more levels than it has seen, so the later histogram may be longer.
func between(was, is []int64) []time.Duration {
	if was == nil || is == nil {
		return nil
	}
	gained := make([]time.Duration, 0, 8)
	for i, d := range is {
		if i < len(was) {
			d -= was[i]
		}
		if d > 0 {
			gained = append(gained, make([]time.Duration, i-len(gained))...)
			gained = append(gained, time.Duration(d))
		}
	}
	return slices.Clip(gained)
}

// Most returns the highest level of a histogram that has any time; 0 for none.
func Most(levels []time.Duration) int { return max(0, len(levels)-1) }

// Mean returns the time-weighted mean of a histogram. ok is false for an empty one.
func Mean(levels []time.Duration) (mean float64, ok bool) {
	var sum, all float64
	for i, d := range levels {
		sum += float64(i) * d.Seconds()
		all += d.Seconds()
	}
	if all <= 0 {
		return 0, false
	}
	return sum / all, true
}
