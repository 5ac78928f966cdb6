// Package nodedemand is what a node tells its cluster's scheduler of the demand of its containers: the spec of an object
// NodeDemand (unthrottle.dev/v1alpha1), one for each node and with the node's name.
//
// # Rule
//
// It holds the [phases.Day] of each container of a pod that runs, as moments and for how many minutes they are known, with
// four significant digits. A reader gets the sums back from these, so that it can add up a service's containers on many
// nodes. A container that is not in it, or an object whose newest row is too old, is not measured: its pod counts as its
// requests.
//
// Names and figures are a stranger's: [Spec.Check] bounds them, and a reader drops an object that it refuses.
package nodedemand

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/packing"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Version is that of Spec. A reader drops objects of others.
const Version = 1

// Bounds of an object. A kubelet has 110 pods by default.
const (
	MostContainers = 512
	LongestName    = 253
	longestService = 3*LongestName + 2
	mostCPUs       = 8192
	mostMinutes    = 366 * 24 * 60
)

// Spec is an object's spec.
type Spec struct {
	Version int `json:"version"`
	// Until is the end of the newest row.
	Until      time.Time   `json:"until"`
	Containers []Container `json:"containers"`
}

// Container is what one container wants.
type Container struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	// Service is what the replicas of one workload have in common: see demand.ServiceOf.
	Service string `json:"service"`
	// MostCPUs is the most that it ever wanted.
	MostCPUs int `json:"mostCPUs"`
	// Phases are those of the day (UTC), phases.Count of them.
	Phases []Phase `json:"phases"`
}

// Phase is for how many minutes the demand is known, and the mean, the variance and the third cumulant of CPUs. All are 0 if
// it is not known.
type Phase [4]float64

// Of is the object of one node's rows. Containers are those of pods with a row in the newest slot; of more than
// MostContainers it has those that want most on average.
func Of(rows []demand.Row) Spec {
	s := Spec{Version: Version, Containers: []Container{}}
	var newest time.Time
	for i := range rows {
		if rows[i].Start.After(newest) {
			newest = rows[i].Start
		}
	}
	if newest.IsZero() {
		return s
	}
	s.Until = newest.Add(demand.SlotLength)
	type seen struct {
		row *demand.Row
		day phases.Day
	}
	of := map[int64]*seen{}
	for i := range rows {
		w := &rows[i]
		if w.Pod == "" || w.WantedCPUSeconds == nil {
			continue
		}
		c := of[w.Cgroup]
		if c == nil {
			c = &seen{row: w}
			of[w.Cgroup] = c
		}
		if !w.Start.Before(c.row.Start) {
			c.row = w
		}
		// Threads pile up behind a quota: where one stopped the container its width counts, as in plan_demand.sql.
		levels := w.Wanted
		if w.StoppedHighSeconds != nil && *w.StoppedHighSeconds > 0 {
			levels = w.Width
		}
		for _, l := range levels {
			c.day[phases.Of(w.Start)].Level(l.CPUs, l.Microseconds)
		}
	}
	for _, c := range of {
		if !c.row.Start.Equal(newest) {
			continue
		}
		s.Containers = append(s.Containers, containerOf(c.row, &c.day))
	}
	mean := func(c *Container) (sum float64) {
		for _, p := range c.Phases {
			sum += p[1]
		}
		return sum
	}
	slices.SortFunc(s.Containers, func(a, b Container) int { return cmp.Or(cmp.Compare(mean(&b), mean(&a)), compare(&a, &b)) })
	s.Containers = s.Containers[:min(len(s.Containers), MostContainers)]
	slices.SortFunc(s.Containers, func(a, b Container) int { return compare(&a, &b) })
	return s
}

func compare(a, b *Container) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
}

func containerOf(w *demand.Row, day *phases.Day) Container {
	c := Container{Namespace: text.Sanitize(w.Namespace, LongestName), Pod: text.Sanitize(w.Pod, LongestName),
		Container: text.Sanitize(w.Container, LongestName), Service: text.Sanitize(w.Service, longestService)}
	for k := range day {
		m, minutes := day[k].Moments(), day[k].Microseconds/float64(time.Minute.Microseconds())
		c.Phases = append(c.Phases, Phase{rounded(min(minutes, mostMinutes)), rounded(m.Mean), rounded(m.Variance), rounded(m.Third)})
		c.MostCPUs = max(c.MostCPUs, day[k].Most)
	}
	return c
}

// rounded has four significant digits.
func rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // what FormatFloat writes it reads
	return v
}

// Day is what the container wants. Its moments are those of c.Phases.
func (c *Container) Day() (d phases.Day) {
	for k, p := range c.Phases {
		d[k] = phases.FromMoments(packing.Moments{Mean: p[1], Variance: p[2], Third: p[3]},
			p[0]*float64(time.Minute.Microseconds()), c.MostCPUs)
	}
	return d
}

// Check says what is wrong with an object that someone else wrote. A third cumulant or a variance may not be more than
// demand between 0 and the most can have.
func (s *Spec) Check() error {
	switch {
	case s.Version != Version:
		return fmt.Errorf("version %d: this program reads %d; update the older one of both", s.Version, Version)
	case len(s.Containers) > MostContainers:
		return fmt.Errorf("containers: %d, at most %d; leave out those that want least", len(s.Containers), MostContainers)
	}
	for i := range s.Containers {
		c := &s.Containers[i]
		if err := c.check(); err != nil {
			return fmt.Errorf("containers[%d] (%s): %w", i, text.Sanitize(c.Pod, LongestName), err)
		}
	}
	return nil
}

func (c *Container) check() error {
	if max(len(c.Namespace), len(c.Pod), len(c.Container)) > LongestName || len(c.Service) > longestService {
		return fmt.Errorf("a name is longer than %d bytes; cut it", LongestName)
	}
	if c.MostCPUs < 0 || c.MostCPUs > mostCPUs {
		return fmt.Errorf("mostCPUs: %d, allowed are 0 to %d", c.MostCPUs, mostCPUs)
	}
	if len(c.Phases) != phases.Count {
		return fmt.Errorf("phases: %d, there must be %d", len(c.Phases), phases.Count)
	}
	const digits = 1.001 // of what is rounded to four
	most := digits * float64(c.MostCPUs)
	for k, p := range c.Phases {
		in := func(v, least, most float64) bool { return v >= least && v <= most } // false of NaN
		if !in(p[0], 0, mostMinutes) || !in(p[1], 0, most) || !in(p[2], 0, most*most) || !in(math.Abs(p[3]), 0, most*most*most) {
			return fmt.Errorf("phases[%d]: %v: minutes, mean, variance and third cumulant of demand up to %d CPUs cannot be that", k, p,
				c.MostCPUs)
		}
	}
	return nil
}
