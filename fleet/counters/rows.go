package counters

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
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
	PodLimit                    // CPUs, of the pod's cgroup: what its specification limits, or the sum of its containers' limits
	Period                      // of the quota, microseconds
	Shares                      // its weight on cgroup v1, 1024 for a CPU that it requests; on v2 cAdvisor converts
	Requests                    // CPUs, of the pod's specification, whatever the node; also of sidecars, which are init containers
	Memory                      // bytes in use
	NodeCPUs                    // online
	NodeMemory                  // bytes
	numberOfFigures
)

// metrics are those that the figures are read from.
var metrics = [numberOfFigures]string{
	Used: "container_cpu_usage_seconds_total", Periods: "container_cpu_cfs_periods_total",
	Throttled: "container_cpu_cfs_throttled_periods_total", ThrottledTime: "container_cpu_cfs_throttled_seconds_total",
	Limit: "container_spec_cpu_quota", PodLimit: "container_spec_cpu_quota", Period: "container_spec_cpu_period",
	Shares:   "container_spec_cpu_shares",
	Requests: "kube_pod_container_resource_requests", Memory: "container_memory_working_set_bytes",
	NodeCPUs: "machine_cpu_cores", NodeMemory: "machine_memory_bytes",
}

// Key is a container, with no Container a pod, or with Node alone a node.
type Key struct{ Node, Namespace, Pod, Container string }

// Slot is what is known of five minutes.
type Slot map[Key]*[numberOfFigures]float64

// Add notes a figure, in addition to one that is there. One that is not a number, or below 0, is none.
func (s Slot) Add(k Key, f Figure, v float64) {
	if !(v >= 0) || math.IsInf(v, 0) {
		return
	}
	if s[k] == nil {
		s[k] = new([numberOfFigures]float64)
		for i := range s[k] {
			s[k][i] = math.NaN()
		}
	}
	if !math.IsNaN(s[k][f]) {
		v += s[k][f]
	}
	s[k][f] = v
}

// name is the container's, for people.
func (k Key) name() string {
	return text.Sanitize(strings.Join([]string{k.Node, k.Namespace, k.Pod, k.Container}, "/"), 0)
}

// Contradiction is a row that cannot be true.
type Contradiction struct {
	Of  Key
	Why string
}

// contradiction says why a row cannot be true; "": it can. Prometheus extrapolates by some percent, more where it
// scrapes seldom, and a limit may change within the slot.
func contradiction(r *demand.Row) string {
	const extrapolated, changed = 1.25, 1.5
	period := usualPeriod
	if r.PeriodMicroseconds != nil {
		period = time.Duration(*r.PeriodMicroseconds) * time.Microsecond
	}
	switch fit := r.Seconds / period.Seconds(); {
	case r.Periods != nil && period > 0 && float64(*r.Periods) > extrapolated*fit+1:
		return fmt.Sprintf("%d periods of %v in %g s", *r.Periods, period, r.Seconds)
	case r.Periods != nil && r.ThrottledPeriods != nil &&
		float64(*r.ThrottledPeriods) > extrapolated*float64(*r.Periods)+1:
		return fmt.Sprintf("%d throttled periods of %d", *r.ThrottledPeriods, *r.Periods)
	case r.LimitCPUs != nil && *r.UsedCPUSeconds > changed*(*r.LimitCPUs)*r.Seconds:
		return fmt.Sprintf("%.3g CPUs used of a limit of %.3g", *r.UsedCPUSeconds/r.Seconds, *r.LimitCPUs)
	case r.HostCPUs != nil && *r.UsedCPUSeconds > extrapolated*float64(*r.HostCPUs)*r.Seconds:
		return fmt.Sprintf("%.3g CPUs used of the node's %d", *r.UsedCPUSeconds/r.Seconds, *r.HostCPUs)
	}
	return ""
}

// exactShares are the nodes whose shares are those that the kubelet wrote, of cgroup v1: some of them are such as
// cAdvisor makes of no weight.
func (s Slot) exactShares() map[string]bool {
	exact := map[string]bool{}
	for k, figures := range s {
		if n := figures[Shares]; n > 0 && n <= cgroup.MaxShares && (n != math.Trunc(n) || !cgroup.WeightsShares(uint64(n))) {
			exact[k.Node] = true
		}
	}
	return exact
}

// usualPeriod is the kernel's own, where it is not known.
const usualPeriod = bandwidth.DefaultPeriod

// Rows are those of a slot's containers, in the order of their names, and those that were left out.
func (s Slot) Rows(cluster string, start time.Time) (rows []demand.Row, left []Contradiction) {
	exact := s.exactShares()
	for k, figures := range s {
		if k.Container == "" || math.IsNaN(figures[Used]) {
			continue
		}
		c := container.Container{Namespace: k.Namespace, Pod: k.Pod, ContainerName: k.Container}
		r := demand.Row{
			Schema: demand.SchemaVersion, Start: start, Began: start, Seconds: demand.SlotLength.Seconds(), Samples: 1,
			Cluster: cluster, Node: text.Sanitize(k.Node, 0), Namespace: text.Sanitize(k.Namespace, 0),
			Pod: text.Sanitize(k.Pod, 0), Container: text.Sanitize(k.Container, 0),
			Service: text.Sanitize(demand.ServiceOf(&c), 0), UsedCPUSeconds: known(figures[Used]),
			Cgroup: demand.CgroupOf(k.Node, k.Namespace, k.Pod, k.Container),
		}
		if limit := known(figures[Limit]); limit != nil && *limit > 0 {
			r.LimitCPUs, r.OwnLimitCPUs, r.LimitScope = limit, limit, container.ScopeOwn
		}
		if pod := s[Key{Node: k.Node, Namespace: k.Namespace, Pod: k.Pod}]; pod != nil && pod[PodLimit] > 0 &&
			(r.LimitCPUs == nil || pod[PodLimit] < *r.LimitCPUs-1e-6) {
			r.LimitCPUs, r.LimitScope = known(pod[PodLimit]), container.ScopePod
		}
		r.RequestCPUs = s.request(k, exact[k.Node])
		r.PeriodMicroseconds, r.MemoryBytes = whole(figures[Period]), whole(figures[Memory])
		if node := s[Key{Node: k.Node}]; node != nil {
			r.HostMemoryBytes = whole(node[NodeMemory])
			if n := whole(node[NodeCPUs]); n != nil && *n <= math.MaxInt32 {
				r.HostCPUs = new(int32(*n))
			}
		}
		stops(&r, figures)
		if why := contradiction(&r); why != "" {
			left = append(left, Contradiction{k, why})
			continue
		}
		rows = append(rows, r)
	}
	slices.SortFunc(left, func(a, b Contradiction) int { return cmp.Compare(a.Of.name(), b.Of.name()) })
	slices.SortFunc(rows, func(a, b demand.Row) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod),
			cmp.Compare(a.Container, b.Container))
	})
	return rows, left
}

// request is what the pod's specification says, or what shares do where they are exact; nil: it is not known, or there
// is none.
func (s Slot) request(k Key, exact bool) *float64 {
	if spec := s[Key{Namespace: k.Namespace, Pod: k.Pod, Container: k.Container}]; spec != nil && spec[Requests] > 0 {
		return known(spec[Requests])
	}
	if n := s[k][Shares]; exact && n <= cgroup.MaxShares {
		if cpus := cgroup.RequestOfShares(uint64(n)); cpus > 0 {
			return &cpus
		}
	}
	return nil
}

// stops are what its quota did, with the bounds of stopped time. For how long its pod's stopped it is not known.
func stops(r *demand.Row, figures *[numberOfFigures]float64) {
	r.Periods, r.ThrottledPeriods, r.ThrottledOwnSeconds = whole(figures[Periods]), whole(figures[Throttled]),
		known(figures[ThrottledTime])
	if r.OwnLimitCPUs == nil { // nothing can stop it but others' quotas, of which nothing is known
		r.Periods, r.ThrottledPeriods, r.ThrottledOwnSeconds = nil, nil, nil
		return
	}
	if r.ThrottledPeriods == nil || r.ThrottledOwnSeconds == nil || r.LimitScope != container.ScopeOwn {
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
