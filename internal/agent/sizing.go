package agent

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
)

// A container is sized by a recording of its own busiest time: what suffices then suffices at all times. The agent
// does not know when that will be. So it records a container when that is about as busy as it was at most within a
// day, and again some hours later if it is then as busy still. From the recording a replay finds the least CPUs of
// each remedy, and the rows of the fleet carry them.
//
// All of that together takes at most sizingShare of one CPU, however many containers there are: what the process's
// threads used for it is measured, and the next recording waits until as much time has passed. What the kernel uses to
// record is not in that, so that there are at most recordsPerHour, as of other recordings. Those wait least that were
// never sized, then those whose last time is longest ago.

const (
	// sizeAgain is how long after a recording for its size a container is not recorded for it again: four times a day.
	sizeAgain = 6 * time.Hour
	// knownFor is how long a container must have been seen before it is known when it is busy.
	knownFor = time.Hour
	// nearBusiest is the share of its busiest minute within a day from which on a container is busy.
	nearBusiest = 0.9
	// leastUse is from how many CPUs on a container is worth a recording.
	leastUse = 0.05
	// sizingShare is the share of one CPU that sizing may take in the long run, mostSaved what it may save up
	// meanwhile, and mostPricing what one recording may take. At its end the search stops, and what it has stays.
	sizingShare = 0.005
	mostSaved   = 18 * time.Second // of an hour
	mostPricing = 30 * time.Second
	// mostSizingBytes bounds a recording that is read for its size: of more events a search takes too long.
	mostSizingBytes = 32 << 20
)

// errForSize says that a recording is none to choose a remedy from.
var errForSize = errors.New("it was made for the container's size")

// SizingDir is where below the flight recorder's directory recordings are while they are priced. None stays.
func SizingDir(dir string) string { return filepath.Join(dir, "sizing") }

// busiest is how busy a container was.
type busiest struct {
	since time.Time
	// mean is its use over about the last minute.
	mean float64
	// hours are the most of it within each of the last 24 hours, by hour modulo 24; hour is the one under way.
	hours [24]float32
	hour  int64
	// sized is when it was recorded last; zero: not yet.
	sized time.Time
}

// add takes a round in.
func (b *busiest) add(used float64, window time.Duration, now time.Time) {
	hour := now.Unix() / 3600
	if b.since.IsZero() {
		b.since, b.mean, b.hour = now, used, hour
	}
	for ; b.hour < hour; b.hour = max(b.hour+1, hour-24) {
		b.hours[(b.hour+1)%24] = 0
	}
	b.hour = hour // also where the clock was set back
	b.mean += (used - b.mean) * -math.Expm1(-window.Seconds()/60)
	at := &b.hours[hour%24]
	*at = max(*at, float32(b.mean))
}

// busy reports whether it is as busy as ever within a day.
func (b *busiest) busy(now time.Time) bool {
	most := float32(0)
	for _, h := range b.hours {
		most = max(most, h)
	}
	return now.Sub(b.since) >= knownFor && b.mean >= leastUse && b.mean >= nearBusiest*float64(most) &&
		(b.sized.IsZero() || now.Sub(b.sized) >= sizeAgain)
}

// sizer decides which container is recorded for its size, and when.
type sizer struct {
	of map[uint64]*busiest // by cgroup id
	// saved is how much CPU time may be used, as of at. Below 0 it is owed.
	saved time.Duration
	at    time.Time
	// underWay: one is recorded or priced. The next one begins at notBefore at the earliest.
	underWay  bool
	notBefore time.Time
}

// round takes a round in, and returns the container to record now; its id is 0: there is none.
func (s *sizer) round(seen []observe.Observation, now time.Time) (due dueRecording) {
	if !s.at.IsZero() && now.After(s.at) {
		s.saved = min(mostSaved, s.saved+time.Duration(sizingShare*float64(now.Sub(s.at))))
	}
	s.at = now
	of := make(map[uint64]*busiest, min(len(seen), maxContainers))
	var next *busiest
	limit := 0.0
	for i := range seen {
		o := &seen[i]
		if o.CgroupID == 0 || o.UsedCPUs == nil || o.LimitCPUs == nil || len(of) == maxContainers {
			continue
		}
		b := s.of[o.CgroupID]
		if b == nil {
			b = &busiest{}
		}
		of[o.CgroupID] = b
		b.add(*o.UsedCPUs, o.Window, now)
		if !b.busy(now) || next != nil && (b.sized.After(next.sized) || b.sized.Equal(next.sized) && *o.LimitCPUs <= limit) {
			continue
		}
		next, limit, due = b, *o.LimitCPUs, dueRecording{o.Container, o.CgroupID, true}
	}
	s.of = of
	if ahead := s.notBefore.Sub(now); s.saved <= 0 || s.underWay || ahead > 0 && ahead <= time.Hour/recordsPerHour {
		return dueRecording{}
	}
	return due
}

// begin notes that a container is recorded.
func (s *sizer) begin(id uint64, now time.Time) {
	s.underWay, s.notBefore = true, now.Add(time.Hour/recordsPerHour)
	if b := s.of[id]; b != nil {
		b.sized = now
	}
}

// end notes what it took.
func (s *sizer) end(took time.Duration) {
	s.underWay = false
	s.saved -= took
}

// toSize is the container to record for its size now; its id is 0: there is none. The caller holds mu.
func (r *recorder) toSize(seen []observe.Observation) dueRecording {
	if r.sink == nil || r.Flight.Price == nil {
		return dueRecording{}
	}
	return r.sizer.round(seen, r.time())
}

// sizeOne records a container and has it priced. It returns at once after the recording.
func (r *recorder) sizeOne(ctx context.Context, d dueRecording) {
	r.mu.Lock()
	r.sizer.begin(d.id, r.time())
	r.mu.Unlock()
	before := r.spent.Of(spent.Recording)
	store := flightrecorder.Store{Dir: SizingDir(r.Flight.Dir)}
	end := r.begin(d) // so that a fix waits meanwhile
	var kept flightrecorder.Kept
	var err error
	busily(func() {
		r.spent.Do(spent.Recording, func() {
			kept, _, err = store.Save(r.time(), d.id, func(w io.Writer) error { return r.Flight.Record(ctx, d.container, w) })
		})
	})
	end("", errForSize)
	took := r.spent.Of(spent.Recording) - before
	if err == nil && kept.Size <= mostSizingBytes {
		select {
		case r.toPrice <- toPrice{d, kept, took}:
			return
		case <-ctx.Done():
		}
	}
	if err == nil {
		err = os.Remove(kept.File)
	}
	r.priced(d, took, demand.Pricing{}, err)
}

// toPrice is a recording that waits for the search, and what it took.
type toPrice struct {
	dueRecording
	kept flightrecorder.Kept
	took time.Duration
}

// price searches in the recordings, one after the other, until ctx ends.
func (r *recorder) price(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-r.toPrice:
			before := r.spent.Of(spent.Pricing)
			var priced demand.Pricing
			var err error
			r.spent.Do(spent.Pricing, func() {
				begin := r.cpu()
				priced, err = r.Flight.Price(ctx, p.kept.File, r.objective(p.container),
					within(ctx, func() bool { return r.cpu()-begin < mostPricing }))
				r.tellPools(ctx, p.id, p.kept.File)
			})
			if gone := os.Remove(p.kept.File); err == nil {
				err = gone
			}
			r.priced(p.dueRecording, p.took+r.spent.Of(spent.Pricing)-before, priced, err)
		}
	}
}

// tellPools adds the thread pools in a recording to the rows. One that cannot be explained has none: that it could not be
// priced either is told.
func (r *recorder) tellPools(ctx context.Context, id uint64, file string) {
	if r.Flight.Explain == nil {
		return
	}
	if e, err := r.Flight.Explain(ctx, file); err == nil {
		r.sink.Pools(id, &e)
	}
}

// cpu is the CPU time of this thread, or what tests set.
func (r *recorder) cpu() time.Duration {
	if r.threadCPU != nil {
		return r.threadCPU()
	}
	return spent.Clock(unix.CLOCK_THREAD_CPUTIME_ID)
}

// within runs replays one after the other for as long as may says so.
func within(ctx context.Context, may func() bool) func(n int, do func(i int) error) error {
	return func(n int, do func(i int) error) error {
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !may() {
				return context.DeadlineExceeded
			}
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
}

// priced takes in what a recording told, and what it took.
func (r *recorder) priced(d dueRecording, took time.Duration, p demand.Pricing, err error) {
	r.mu.Lock()
	r.sizer.end(took)
	r.mu.Unlock()
	name := text.Sanitize(d.container.Name, maxLabel)
	switch {
	case err != nil:
		r.Log.Info("a container could not be sized", "container", name, "why", err)
	case len(p.Prices) > 0:
		r.sink.Priced(d.id, p)
		r.Log.Debug("sized a container", "container", name, "took", took)
	}
}
