package counters

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/fleet"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Figure is one of those that Prometheus is asked for.
type Figure int

// The figures. Those from NodeCPUs on are of a node.
const (
	Used          Figure = iota // CPU seconds in the slot
	Periods                     // of its quota, in the slot
	Throttled                   // of these
	ThrottledTime               // seconds, a sum over CPUs
	Limit                       // CPUs
	Period                      // of the quota, microseconds
	Shares                      // its weight on cgroup v1, 1024 for a CPU that it requests
	Memory                      // bytes in use
	NodeCPUs                    // online
	NodeMemory                  // bytes
	numberOfFigures
)

// Key is a container, or with Node alone a node.
type Key struct{ Node, Namespace, Pod, Container string }

// Slot is what is known of five minutes.
type Slot map[Key]*[numberOfFigures]float64

// Set notes a figure. One that is not a number, or below 0, is none.
func (s Slot) Set(of Key, f Figure, v float64) {
	if !(v >= 0) || math.IsInf(v, 0) {
		return
	}
	if s[of] == nil {
		s[of] = new([numberOfFigures]float64)
		for i := range s[of] {
			s[of][i] = math.NaN()
		}
	}
	s[of][f] = v
}

// fewestShares is what Kubernetes gives a container that requests no CPU.
const fewestShares = 2

// usualPeriod is the kernel's own, where it is not known.
const usualPeriod = 100 * time.Millisecond

// Rows are those of a slot's containers, in the order of their names.
func (s Slot) Rows(cluster string, start time.Time) (rows []fleet.Row) {
	for k, of := range s {
		if k.Container == "" || math.IsNaN(of[Used]) {
			continue
		}
		c := container.Container{Namespace: k.Namespace, Pod: k.Pod, ContainerName: k.Container}
		r := fleet.Row{
			Schema: fleet.SchemaVersion, Start: start, Began: start, Seconds: fleet.SlotLength.Seconds(), Samples: 1,
			Cluster: cluster, Node: text.Sanitize(k.Node, 0), Namespace: text.Sanitize(k.Namespace, 0), Pod: text.Sanitize(k.Pod, 0), Container: text.Sanitize(k.Container, 0),
			Service: text.Sanitize(fleet.ServiceOf(&c), 0), Cgroup: number(k), UsedCPUSeconds: known(of[Used]),
		}
		if limit := known(of[Limit]); limit != nil && *limit > 0 {
			r.LimitCPUs, r.OwnLimitCPUs, r.LimitScope = limit, limit, container.ScopeOwn
		}
		if shares := of[Shares]; shares > fewestShares {
			r.RequestCPUs = new(shares / 1024)
		}
		r.PeriodMicroseconds, r.MemoryBytes = whole(of[Period]), whole(of[Memory])
		if node := s[Key{Node: k.Node}]; node != nil {
			r.HostMemoryBytes = whole(node[NodeMemory])
			if n := whole(node[NodeCPUs]); n != nil && *n <= math.MaxInt32 {
				r.HostCPUs = new(int32(*n))
			}
		}
		stops(&r, of)
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b fleet.Row) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
	})
	return rows
}

// stops are what its quota did, with the bounds of stopped time.
func stops(r *fleet.Row, of *[numberOfFigures]float64) {
	r.Periods, r.ThrottledPeriods, r.ThrottledOwnSeconds = whole(of[Periods]), whole(of[Throttled]), known(of[ThrottledTime])
	if r.LimitCPUs == nil { // nothing can stop it but others' quotas, of which nothing is known
		r.Periods, r.ThrottledPeriods, r.ThrottledOwnSeconds = nil, nil, nil
		return
	}
	if r.ThrottledPeriods == nil || r.ThrottledOwnSeconds == nil {
		return
	}
	period := usualPeriod
	if r.PeriodMicroseconds != nil {
		period = time.Duration(*r.PeriodMicroseconds) * time.Microsecond
	}
	high := min(*r.ThrottledOwnSeconds, float64(*r.ThrottledPeriods)*period.Seconds(), r.Seconds)
	low := 0.0
	if r.HostCPUs != nil && *r.HostCPUs > 0 {
		low = min(high, *r.ThrottledOwnSeconds/float64(*r.HostCPUs))
	}
	r.StoppedLowSeconds, r.StoppedHighSeconds = &low, &high
}

func known(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

func whole(v float64) *int64 {
	if math.IsNaN(v) || v > 1<<62 {
		return nil
	}
	return new(int64(math.Round(v)))
}

// number stands for the cgroup's, which counters do not have: the same for the same names.
func number(k Key) int64 {
	h := fnv.New64a()
	for _, part := range []string{k.Node, k.Namespace, k.Pod, k.Container} {
		h.Write([]byte(part)) // a hash.Hash never fails
		h.Write([]byte{0})
	}
	return int64(h.Sum64() >> 1)
}
