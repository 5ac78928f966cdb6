package agent

import (
	"sync"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
)

// maxContainers bounds the containers that are exported; what is beyond is
// counted, and dropped from the page (labels are strangers' names, and each
// costs memory here and in the metrics store).
const maxContainers = 4096

// maxLabel bounds one label's value in bytes.
const maxLabel = 256

// total is what a container's windows add up to since the agent first saw it.
// A figure that was never measured stays nil and is not exported.
type total struct {
	labels []string
	limit  *float64
	// scope says whose limit that is: own, pod or slice; "" without one.
	scope string

	usedSeconds                        *float64
	periods, throttledPeriods          *float64
	ownThrottledCPU, otherThrottledCPU *float64
	stoppedLow, stoppedHigh            *float64
	width, wanted                      histogram

	// Thread time waited by cause, how much of the quotas' may be contention, and CPU time wanted.
	waitedQuota, waitedAncestor, waitedContention *float64
	waitingUnclear, wantedCPU                     *float64
}

// totals adds observations up, so that a scrape interval needs no relation to
// the agent's window. It may be read while it is added to.
type totals struct {
	mu      sync.Mutex
	byPath  map[string]*total
	dropped int
	vacant  int
}

// add takes one round in, and how many containers without a process were left out of it: what is not in it is gone and
// is forgotten, since a
// cgroup made later under the same path is another one.
func (t *totals) add(round []observe.Observation, vacant int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[string]*total, min(len(round), maxContainers))
	t.dropped, t.vacant = 0, vacant
	for i := range round {
		o := &round[i]
		path := o.Container.Group.Path
		if len(next) == maxContainers {
			t.dropped = len(round) - i
			break
		}
		sum := t.byPath[path]
		if sum == nil {
			sum = &total{labels: labels(o.Container)}
		}
		sum.add(o)
		next[path] = sum
	}
	t.byPath = next
}

func (t *total) add(o *observe.Observation) {
	t.limit, t.scope = o.LimitCPUs, o.Container.ScopeOf(o.LimitAt)
	window := o.Window.Seconds()
	if o.UsedCPUs != nil {
		increase(&t.usedSeconds, *o.UsedCPUs*window)
	}
	if o.Periods != nil {
		increase(&t.periods, float64(*o.Periods))
	}
	if o.ThrottledPeriods != nil {
		increase(&t.throttledPeriods, float64(*o.ThrottledPeriods))
	}
	if o.OwnThrottledSeconds != nil {
		increase(&t.ownThrottledCPU, *o.OwnThrottledSeconds)
	}
	if o.ThrottledSeconds != nil && o.OwnThrottledSeconds != nil {
		// The two counters are read one after the other, so that the difference may be slightly below zero.
		increase(&t.otherThrottledCPU, max(0, *o.ThrottledSeconds-*o.OwnThrottledSeconds))
	}
	t.width.add(o.Width)
	t.wanted.add(o.Wanted)
	if w, ok := o.Waiting(); ok {
		increase(&t.waitedQuota, w.Quota.Seconds())
		increase(&t.waitedAncestor, w.Ancestor.Seconds())
		increase(&t.waitedContention, w.Contention.Seconds())
		increase(&t.waitingUnclear, w.Unclear.Seconds())
	}
	if cpu, ok := o.WantedCPU(); ok {
		increase(&t.wantedCPU, cpu.Seconds())
	}
	if o.StoppedLow != nil {
		increase(&t.stoppedLow, o.StoppedLow.Seconds())
	}
	if o.StoppedHigh != nil {
		increase(&t.stoppedHigh, o.StoppedHigh.Seconds())
	}
}

func increase(sum **float64, by float64) {
	if *sum == nil {
		*sum = new(float64)
	}
	**sum += by
}

// labels are namespace, pod, container and id, as cAdvisor has them, so that
// dashboards can join.
func labels(c container.Container) []string {
	name := c.Name
	if c.Pod != "" && c.ContainerName != "" {
		name = c.ContainerName
	}
	return []string{
		text.Sanitize(c.Namespace, maxLabel),
		text.Sanitize(c.Pod, maxLabel),
		text.Sanitize(name, maxLabel),
		boundedPath(c.Group.Path),
	}
}

// boundedPath keeps a path's end, which tells groups apart better than its
// beginning does.
func boundedPath(path string) string {
	path = text.EscapePath(path)
	if len(path) <= maxPath {
		return path
	}
	return "..." + text.Sanitize(path[len(path)-maxPath+3:], maxPath)
}

// maxPath bounds the id label; cgroup paths may be 4 kB long.
const maxPath = 1024
