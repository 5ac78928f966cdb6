// Package phases tells what a container wants in each part of the day.
//
// # Rule
//
// The day (UTC) has [Count] phases of three hours. In each one the time at so many CPUs is summed, with their squares and
// cubes: these are the [packing.Moments] of the phase. A phase in which a container was seen for less than half an hour
// is taken from its service, and one that not even that knows counts as the phase of greatest need.
//
// # Worked example
//
// 4 CPUs for a quarter of a phase and none for the rest: mean 1, mean of the squares 4, of the cubes 16. The variance is
// 4 - 1 = 3 and the third cumulant 16 - 3*1*4 + 2 = 6.
package phases

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand/packing"
)

// Count is how many phases a day has.
const Count = 8

// Length is that of a phase.
const Length = 24 * time.Hour / Count

// Of is the phase of a moment, from 0.
func Of(at time.Time) int { return int(at.UTC().Sub(at.UTC().Truncate(24*time.Hour)) / Length) }

// Least is for how long a container must have been seen in a phase for that to say what it wants there.
const Least = 30 * time.Minute

// Sums are those of one phase: for how long demand is known, the sums over that time of CPUs, of their squares and of their
// cubes, and the most CPUs.
type Sums struct {
	Microseconds, CPUs, Squares, Cubes float64
	Most                               int
}

// Add adds more time.
func (s *Sums) Add(more Sums) {
	s.Microseconds, s.CPUs = s.Microseconds+more.Microseconds, s.CPUs+more.CPUs
	s.Squares, s.Cubes, s.Most = s.Squares+more.Squares, s.Cubes+more.Cubes, max(s.Most, more.Most)
}

// Level adds time at so many CPUs.
func (s *Sums) Level(cpus int32, microseconds int64) {
	w, c := float64(microseconds), float64(cpus)
	s.Add(Sums{Microseconds: w, CPUs: c * w, Squares: c * c * w, Cubes: c * c * c * w, Most: int(cpus)})
}

// Moments are those of the time summed. Of none all are 0.
func (s *Sums) Moments() packing.Moments {
	if s.Microseconds == 0 {
		return packing.Moments{}
	}
	mean, square, cube := s.CPUs/s.Microseconds, s.Squares/s.Microseconds, s.Cubes/s.Microseconds
	return packing.Moments{
		Mean: mean, Variance: max(0, square-mean*mean), Third: cube - 3*mean*square + 2*mean*mean*mean,
	}
}

// FromMoments are the sums that have these moments over so much time.
func FromMoments(m packing.Moments, microseconds float64, most int) Sums {
	square := m.Variance + m.Mean*m.Mean
	return Sums{Microseconds: microseconds, CPUs: microseconds * m.Mean, Squares: microseconds * square,
		Cubes: microseconds * (m.Third + 3*m.Mean*square - 2*m.Mean*m.Mean*m.Mean), Most: most}
}

// Day is what a container wants, by phase.
type Day [Count]Sums

// Add adds what another one wants, such as another container of its service.
func (d *Day) Add(more *Day) {
	for k := range d {
		d[k].Add(more[k])
	}
}

// Or is the day with the service's demand in those phases in which the container was seen for less than [Least]: that of
// pods whose place it took. nil stays nil.
func (d *Day) Or(service *Day) *Day {
	if d == nil {
		return nil
	}
	both := *d
	for k := range both {
		if both[k].Microseconds < float64(Least.Microseconds()) {
			both[k] = service[k]
		}
	}
	return &both
}

// Moments are what a container wants in each phase, and at most. Of one without rows it is taken to want as much as in that
// of which its need is greatest.
func (d *Day) Moments() (wants []packing.Moments, most float64) {
	wants = make([]packing.Moments, Count)
	busiest := 0
	size := func(m packing.Moments) float64 { return m.Mean + math.Sqrt(m.Variance) }
	for k := range d {
		if d[k].Microseconds == 0 {
			continue
		}
		wants[k] = d[k].Moments()
		most = max(most, float64(d[k].Most))
		if d[busiest].Microseconds == 0 || size(wants[k]) > size(wants[busiest]) {
			busiest = k
		}
	}
	for k := range d {
		if d[k].Microseconds == 0 {
			wants[k] = wants[busiest]
		}
	}
	return wants, most
}

// Constant is a demand that is always the same.
func Constant(cpus float64) []packing.Moments {
	return slices.Repeat([]packing.Moments{{Mean: cpus}}, Count)
}
