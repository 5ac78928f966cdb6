package observe

import (
	"errors"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
)

// Widths is the probe's part of what a Sampler reads; *probe.Probe is one.
type Widths interface {
	// Watch begins to count a container, Unwatch ends it; Read tells what was counted since.
	Watch(counts.Container) error
	Unwatch(id uint64) error
	Read(id uint64) (counts.Counts, error)
}

// counting is which containers a Sampler has the probe count.
type counting struct {
	probe Widths
	host  *cgroup.Host
	known map[uint64]*counted // by LevelSample.ID, which costs no extra call to the kernel
}

// counted is one container that the probe watches.
type counted struct {
	id    uint64 // the cgroup's
	round uint64 // the last one in which it was there
}

// fill reads what the probe counted of one container. A container that is new is watched from now on and has its
// first counts in the next round.
func (w *counting) fill(dst *Sample, c *container.Container, round uint64) {
	if w.probe == nil {
		return
	}
	this, err := w.watch(dst.Levels[0].ID, c)
	if err == nil {
		this.round = round
		dst.cgroupID = this.id
		var read counts.Counts
		if read, err = w.probe.Read(this.id); err == nil {
			dst.counts = &read
		}
	}
	if err != nil {
		dst.missing("width: " + err.Error())
	}
}

func (w *counting) watch(key uint64, c *container.Container) (*counted, error) {
	if this := w.known[key]; this != nil {
		return this, nil
	}
	if key == 0 {
		return nil, errors.New("the cgroup cannot be told from one made later under its path")
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

// sweep has the probe forget what was not there in this round.
func (w *counting) sweep(round uint64) {
	for key, this := range w.known {
		if this.round != round {
			// It is gone, or not ours to know any longer: nothing depends on whether the probe still knew it.
			_ = w.probe.Unwatch(this.id)
			delete(w.known, key)
		}
	}
}

// exactPart is how late, as a part of the window, the probe may count and stopped time still be called exact. It is a
// millisecond of a second, the unit in which stopped time is shown.
const exactPart = 1000

// exact replaces bounds by what the probe counted between the two samples. A hypervisor that takes a CPU away while it
// counts makes stops begin or end late there: stopped time is then as counted, less or more what was late
// (counts.Counts.StoppedLateNS). The counters' bounds stay where a sample's counts themselves are not exact.
func (o *Observation) exact(prev, cur *counts.Counts) {
	if prev == nil || cur == nil || prev.SinceNS != cur.SinceNS || cur.AtNS <= prev.AtNS {
		return
	}
	o.Width, o.Wanted = between(prev.WidthNS, cur.WidthNS), between(prev.WantedNS, cur.WantedNS)
	if prev.StoppedNS == nil || cur.StoppedNS == nil || prev.Hasty || cur.Hasty {
		return
	}
	// The probe and the counters are read microseconds apart: never more than the window.
	stopped := min(max(0, time.Duration(*cur.StoppedNS-*prev.StoppedNS)), o.Window)
	late := time.Duration(cur.StoppedLateNS - prev.StoppedLateNS)
	if o.StoppedExact = late <= o.Window/exactPart; o.StoppedExact {
		late = 0
	}
	o.StoppedLow, o.StoppedHigh = new(max(0, stopped-late)), new(min(stopped+late, o.Window))
	if prev.StoppedSpells != nil && cur.StoppedSpells != nil {
		o.StoppedSpells = new(*cur.StoppedSpells - *prev.StoppedSpells)
	}
}

// between is what a histogram gained, without the empty levels at its end; nil if it was not measured. The probe gives
// no more levels than it has seen, so that the later one may have more.
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

// Most is the highest level of a histogram with any time; 0 for none.
func Most(levels []time.Duration) int { return max(0, len(levels)-1) }

// Mean is the time-weighted mean of a histogram; ok is false for an empty one.
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
