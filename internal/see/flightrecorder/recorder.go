package flightrecorder

import (
	"math"
	"slices"
	"time"
)

// Identity of a container as it is kept: enough to find it again when it is gone.
type Identity struct {
	ID uint64 `json:"id"` // cgroup id
	// Boot is the id of the boot that the cgroup is of; "": not known.
	Boot string `json:"boot,omitempty"`
	Path string `json:"path"`
	Name string `json:"name"`
}

// Key tells containers apart. The kernel gives cgroup ids anew after each boot, so the id alone does not.
type Key struct {
	ID   uint64
	Boot string
}

// Key is the container's.
func (c Identity) Key() Key { return Key{c.ID, c.Boot} }

// Dropped is a container whose periods had to make room.
type Dropped struct {
	Container Identity  `json:"container"`
	At        time.Time `json:"at"`
	// Rows is how many were dropped.
	Rows int    `json:"rows"`
	Why  string `json:"why"`
}

// Recorder keeps the periods of the containers that were stopped most. It depends on its calls alone: it has no clock
// and no lock.
type Recorder struct {
	slots [Slots]*slot
	// scores is the stopped time of each container seen lately, halved every halfLife.
	scores  map[Key]*score
	dropped []Dropped
	// droppedInAll also counts drops that dropped has no room for.
	droppedInAll uint64
}

type slot struct {
	container Identity
	ring      ring
	flushed   uint64 // ring.written at the last flush
}

type score struct {
	stopped float64 // seconds
	at      time.Time
}

const (
	halfLife = 20 * time.Minute
	// maxScores bounds the containers whose stopped time is kept; the least goes first.
	maxScores = 1024
	// maxDropped bounds the list of drops.
	maxDropped = 64
	// ahead is the factor by which a new container must have been stopped more than the one that makes room. Without it
	// two containers could swap one slot all the time, and neither would have an hour.
	ahead = 1.5
)

// NewRecorder returns a recorder without periods.
func NewRecorder() *Recorder { return &Recorder{scores: map[Key]*score{}} }

// Add takes one period of a container, and decides whether to keep it.
func (r *Recorder) Add(c Identity, p Period) {
	s := r.score(c.Key(), p)
	at := r.find(c.Key())
	if at < 0 {
		if at = r.place(c, s, p.End); at < 0 {
			return
		}
	}
	to := r.slots[at]
	to.container = c
	if to.ring.add(p) {
		to.flushed = 0 // its file has rows that are gone
	}
}

func (r *Recorder) find(k Key) int {
	return slices.IndexFunc(r.slots[:], func(s *slot) bool { return s != nil && s.container.Key() == k })
}

// score adds a period's stopped time to its container's.
func (r *Recorder) score(k Key, p Period) float64 {
	s := r.scores[k]
	if s == nil {
		if len(r.scores) >= maxScores {
			r.forget(p.End)
		}
		s = &score{at: p.End}
		r.scores[k] = s
	}
	s.stopped = s.settle(p.End) + min(1, max(0, p.Stopped))*p.Length.Seconds()
	return s.stopped
}

// settle brings a score to a moment, and returns it. Where the clock was set back it is halved from that moment on.
func (s *score) settle(t time.Time) float64 {
	s.stopped *= math.Exp2(-max(0, t.Sub(s.at).Seconds()) / halfLife.Seconds())
	s.at = t
	return s.stopped
}

// forget makes room among the scores: it removes the least stopped that has no slot.
func (r *Recorder) forget(now time.Time) {
	var least Key
	low := math.Inf(1)
	for k, s := range r.scores {
		if v := s.settle(now); v < low && r.find(k) < 0 {
			least, low = k, v
		}
	}
	delete(r.scores, least)
}

// place finds a slot for a new container: a free one, or that of the container that was stopped least, if the new one
// was stopped clearly more. It returns -1 without a slot.
func (r *Recorder) place(c Identity, stopped float64, now time.Time) int {
	if stopped <= 0 {
		return -1
	}
	least, low := -1, math.Inf(1)
	for i, s := range r.slots {
		if s == nil {
			r.slots[i] = &slot{}
			return i
		}
		v := 0.0
		if known := r.scores[s.container.Key()]; known != nil {
			v = known.settle(now)
		}
		if v < low {
			least, low = i, v
		}
	}
	if stopped <= low*ahead {
		return -1
	}
	r.drop(least, now, "another container was stopped longer")
	r.slots[least] = &slot{}
	return least
}

func (r *Recorder) drop(i int, now time.Time, why string) {
	s := r.slots[i]
	r.droppedInAll++
	if len(r.dropped) == maxDropped {
		r.dropped = slices.Delete(r.dropped, 0, 1)
	}
	r.dropped = append(r.dropped, Dropped{Container: s.container, At: now, Rows: len(s.ring.rows), Why: why})
}

// Containers returns those whose periods are kept.
func (r *Recorder) Containers() []Identity {
	var kept []Identity
	for _, s := range r.slots {
		if s != nil {
			kept = append(kept, s.container)
		}
	}
	return kept
}

// Periods returns those of a container that end after from and start before to, oldest first; nil without any.
func (r *Recorder) Periods(k Key, from, to time.Time) []Period {
	i := r.find(k)
	if i < 0 {
		return nil
	}
	return r.slots[i].ring.periods(from, to)
}

// Dropped returns the latest containers that had to make room, oldest first, and their number in all.
func (r *Recorder) Dropped() (latest []Dropped, inAll uint64) {
	return slices.Clone(r.dropped), r.droppedInAll
}

// Bytes returns the memory of the kept periods.
func (r *Recorder) Bytes() int {
	n := 0
	for _, s := range r.slots {
		if s != nil {
			n += cap(s.ring.rows) * rowBytes
		}
	}
	return n
}
