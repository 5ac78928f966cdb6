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
// A node's rows of some days are too many to be held at once. So [Part.Add] takes them in any portions and keeps sums, and [Of]
// makes the object of such parts, for example one of each hour.
//
// Names and figures are a stranger's: [Spec.Check] bounds them, and a reader drops an object that it refuses.
package nodedemand

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/packing"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Where the objects are in the API, which have the names of their nodes.
const (
	Group      = "unthrottle.dev"
	APIVersion = "v1alpha1"
	Plural     = "nodedemands"
	Kind       = "NodeDemand"
)

// Version is that of Spec. A reader drops objects of others.
const Version = 1

// Bounds of an object. A kubelet has 110 pods by default.
const (
	MostContainers = 512
	LongestName    = 253
	LongestService = 3*LongestName + 2
	MostCPUs       = 8192
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

// mostSeen bounds what a part keeps: containers, once for each phase of the day. One hour has one phase.
const mostSeen = 4 * MostContainers

// Part is what some of a node's rows tell. The zero value is that of none. It keeps no row, and is of a bounded size.
type Part struct {
	// newest is the beginning of the newest slot, and running are the containers with a row in it, by cgroup.
	newest  time.Time
	running map[int64]Container
	seen    map[seen]phases.Sums
	// services are of what service each container seen is, as a hash.
	services map[int64]uint64
}

// seen is a container in a phase of the day.
type seen struct {
	cgroup int64
	phase  int
}

// Add adds rows. Those of more containers than a part keeps, and those whose histogram no kernel can have made, are left out;
// leftOut is how many.
func (p *Part) Add(rows []demand.Row) (leftOut int) {
	if p.seen == nil {
		p.seen, p.running, p.services = map[seen]phases.Sums{}, map[int64]Container{}, map[int64]uint64{}
	}
	for i := range rows {
		w := &rows[i]
		if w.Start.After(p.newest) {
			p.newest = w.Start
			clear(p.running)
		}
		if w.Pod == "" || w.WantedCPUSeconds == nil {
			continue
		}
		// Threads pile up behind a quota: where one stopped the container its width counts, as in plan_demand.sql.
		levels := w.Wanted
		if w.StoppedHighSeconds != nil && *w.StoppedHighSeconds > 0 {
			levels = w.Width
		}
		at := seen{w.Cgroup, phases.Of(w.Start)}
		sums, known := p.seen[at]
		if !known && len(p.seen) >= mostSeen || !sound(levels) {
			leftOut++
			continue
		}
		for _, l := range levels {
			sums.Level(l.CPUs, l.Microseconds)
		}
		p.seen[at] = sums
		if w.Service != "" {
			p.services[w.Cgroup] = hash(w.Service)
		}
		if w.Start.Equal(p.newest) {
			name := func(of string, most int) string { return strings.Clone(text.Sanitize(of, most)) } // not a page of the file
			p.running[w.Cgroup] = Container{Namespace: name(w.Namespace, LongestName), Pod: name(w.Pod, LongestName),
				Container: name(w.Container, LongestName), Service: name(w.Service, LongestService)}
		}
	}
	return leftOut
}

func hash(service string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(service))
	return h.Sum64()
}

// Settle drops the names of the containers, which only a part with the newest slot of all needs.
func (p *Part) Settle() { p.running = map[int64]Container{} }

// sound tells whether a slot can have a histogram.
func sound(levels []demand.Level) bool {
	for _, l := range levels {
		if l.CPUs < 0 || l.CPUs > MostCPUs || l.Microseconds < 0 || l.Microseconds > 2*demand.SlotLength.Microseconds() {
			return false
		}
	}
	return true
}

// Of is the object of one node, of all parts of its rows; its Until is zero if there are none. Containers are those of pods with
// a row in the newest slot; of more than MostContainers it has those that want most on average. In a phase in which one was seen for less
// than [phases.Least] it counts with those of its service that ended on this node: it took the place of one of them.
func Of(parts ...*Part) Spec {
	s := Spec{Version: Version, Containers: []Container{}}
	var newest time.Time
	for _, p := range parts {
		if p.newest.After(newest) {
			newest = p.newest
		}
	}
	if newest.IsZero() {
		return s
	}
	s.Until = newest.Add(demand.SlotLength).UTC()
	running, days := map[int64]Container{}, map[int64]*phases.Day{}
	for _, p := range parts {
		if p.newest.Equal(newest) {
			maps.Copy(running, p.running)
		}
	}
	for cgroup := range running {
		days[cgroup] = &phases.Day{}
	}
	services, ended := map[int64]uint64{}, map[uint64]*phases.Day{}
	for _, p := range parts {
		maps.Copy(services, p.services)
		for at, sums := range p.seen {
			day, service := days[at.cgroup], p.services[at.cgroup]
			if day == nil {
				if day = ended[service]; day == nil {
					day = &phases.Day{}
					ended[service] = day
				}
			}
			day[at.phase].Add(sums)
		}
	}
	for cgroup, c := range running {
		day := days[cgroup]
		if service, ok := services[cgroup]; ok && ended[service] != nil {
			before := *ended[service]
			before.Add(day)
			day = day.Or(&before)
		}
		c.tell(day)
		s.Containers = append(s.Containers, c)
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

// tell takes what the container wants.
func (c *Container) tell(day *phases.Day) {
	for k := range day {
		m, minutes := day[k].Moments(), day[k].Microseconds/float64(time.Minute.Microseconds())
		c.Phases = append(c.Phases, Phase{rounded(min(minutes, mostMinutes)), rounded(m.Mean), rounded(m.Variance), rounded(m.Third)})
		c.MostCPUs = max(c.MostCPUs, day[k].Most)
	}
}

// Refresh is how much newer an object's rows may be than those that its API server has before it is told anew although all
// figures are the same: early enough that a scheduler with the usual maxAge of 15 minutes does not take the node for silent.
const Refresh = 2 * demand.SlotLength

// NewsTo tells whether an object says more than the one before: it is of a newer slot, and its figures differ or are to be
// confirmed. One before that is of a time to come, since a clock was set back, never stays.
func (s *Spec) NewsTo(before *Spec, now time.Time) bool {
	switch {
	case before.Version != s.Version || before.Until.After(now.Add(demand.SlotLength)):
		return true
	case !s.Until.After(before.Until):
		return false
	case s.Until.Sub(before.Until) >= Refresh:
		return true
	}
	return !slices.EqualFunc(s.Containers, before.Containers, func(a, b Container) bool {
		return compare(&a, &b) == 0 && a.Service == b.Service && a.MostCPUs == b.MostCPUs && slices.Equal(a.Phases, b.Phases)
	})
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

// Read is the spec of an object as a client without types has it. What it says is not checked.
func Read(spec any) (s Spec, err error) {
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
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
	if max(len(c.Namespace), len(c.Pod), len(c.Container)) > LongestName || len(c.Service) > LongestService {
		return fmt.Errorf("a name is longer than %d bytes; cut it", LongestName)
	}
	if c.MostCPUs < 0 || c.MostCPUs > MostCPUs {
		return fmt.Errorf("mostCPUs: %d, allowed are 0 to %d", c.MostCPUs, MostCPUs)
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
