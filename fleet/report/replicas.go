package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
)

// replica is what one replica of a service wanted: a container, or several that took each other's place.
type replica struct {
	sized
	members []*sized
}

// surge is for how long a container may run beside the one whose place it takes, as in a rolling deploy.
const surge = demand.SlotLength

// settings are what the containers of a replica have in common.
func (c *sized) settings() string {
	value := func(v *float64) float64 {
		if v == nil {
			return -1
		}
		return *v
	}
	allowed := int32(-1)
	if c.AllowedCPUs != nil {
		allowed = *c.AllowedCPUs
	}
	return fmt.Sprint(c.Remedy, value(c.OwnLimitCPUs), value(c.LimitCPUs), allowed)
}

// replicasOf are the replicas of containers with the same settings: one follows another that has ended, of these the
// one that ended last. A StatefulSet's follow those of their own name.
func replicasOf(containers []*sized) (all []*replica) {
	slices.SortFunc(containers, func(a, b *sized) int {
		return cmp.Or(cmp.Compare(a.FirstMS, b.FirstMS), cmp.Compare(a.ContainerNo, b.ContainerNo))
	})
	ended := map[string][]*replica{} // by their ends; that of a StatefulSet's pod by its name
	byEnd := func(r *replica, ms int64) int { return cmp.Compare(r.UntilMS, ms) }
	for _, c := range containers {
		name := ""
		if _, kind := demand.WorkloadOf(c.Pod, ""); kind == demand.StatefulSet {
			name = c.Pod
		}
		before := ended[name]
		i, _ := slices.BinarySearchFunc(before, c.FirstMS+surge.Milliseconds()+1, byEnd)
		r := &replica{sized: *c}
		if i > 0 {
			r = before[i-1]
			before = slices.Delete(before, i-1, i)
			r.add(c)
		} else {
			all = append(all, r)
		}
		r.members = append(r.members, c)
		i, _ = slices.BinarySearchFunc(before, r.UntilMS+1, byEnd)
		ended[name] = slices.Insert(before, i, r)
	}
	return all
}

// add adds what another container with the same settings wanted.
func (c *sized) add(more *sized) {
	plus := func(to **float64, v *float64) {
		switch {
		case v == nil:
		case *to == nil:
			*to = v
		default:
			*to = new(**to + *v)
		}
	}
	c.UntilMS = max(c.UntilMS, more.UntilMS)
	plus(&c.MeasuredSeconds, more.MeasuredSeconds)
	plus(&c.StoppedHighSeconds, more.StoppedHighSeconds)
	plus(&c.CandidateSeconds, more.CandidateSeconds)
	plus(&c.CandidatePeriods, more.CandidatePeriods)
	if c.WidestMeanCPUs == nil || more.WidestMeanCPUs != nil && *more.WidestMeanCPUs > *c.WidestMeanCPUs {
		c.WidestMeanCPUs = more.WidestMeanCPUs
	}
	c.width, c.wanted = together(c.width, more.width), together(c.wanted, more.wanted)
	c.others = append(c.others, more.others...)
}

// together is one histogram of two.
func together(a, b []leastlimit.Level) (both []leastlimit.Level) {
	lasted := map[int32]int64{}
	for _, l := range slices.Concat(a, b) {
		lasted[l.CPUs] += l.Microseconds
	}
	for _, cpus := range slices.Sorted(maps.Keys(lasted)) {
		both = append(both, leastlimit.Level{CPUs: cpus, Microseconds: lasted[cpus]})
	}
	return both
}

// size finds what replicas with the same settings need, and tells their containers why it is not known. One that was
// observed for less than half as long as another is judged with all of them: an hour of the day is not the day. One of
// which nothing is known yet needs what the others do.
func (s *service) size(containers []*sized, bound float64) {
	replicas := replicasOf(containers)
	longest := 0.0
	for _, r := range replicas {
		if r.MeasuredSeconds != nil {
			longest = max(longest, *r.MeasuredSeconds)
		}
	}
	var all *replica
	known := false
	for _, r := range replicas {
		switch short := longest >= leastMeasured && r.MeasuredSeconds != nil && *r.MeasuredSeconds < longest/2; {
		case !short:
			known = s.take(r, bound) || known
		case all == nil:
			all = &replica{sized: replicas[0].sized}
			for _, other := range replicas[1:] {
				all.add(&other.sized)
			}
			known = s.take(all, bound) || known
			fallthrough
		default:
			r.unknown, r.byBounds = all.unknown, all.byBounds
		}
		for _, c := range r.members {
			c.unknown, c.byBounds, c.shard = r.unknown, r.byBounds, r.members[len(r.members)-1]
		}
	}
	for _, c := range containers {
		if known && c.unknown == tooShort {
			c.unknown = ""
		}
	}
}

// take takes what a replica needs; false: that is not known.
func (s *service) take(r *replica, bound float64) bool {
	demand := r.demand()
	if r.unknown = r.why(&demand); r.unknown != "" {
		return false
	}
	if s.need == nil {
		s.need = &need{}
	}
	s.need.take(r.need(&demand, bound))
	return true
}
