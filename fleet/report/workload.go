package report

import (
	"github.com/unthrottle/unthrottle/internal/demand"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// workload is what the pods of one service have in common, whose controller it names; without any it is none.
type workload struct {
	kind, namespace, name, container string
	limit, request                   *float64
	limits, requests                 bool           // they differ
	on                               map[string]int // pods on each node
}

// add takes a container that runs now.
func (w *workload) add(c *sized) {
	if c.Pod == "" || c.Namespace == "" {
		return
	}
	name, kind := demand.WorkloadOf(c.Pod, "")
	if w.on == nil {
		*w = workload{
			kind: kind, namespace: c.Namespace, name: name, container: c.Container,
			limit: c.OwnLimitCPUs, request: c.RequestCPUs, on: map[string]int{},
		}
	}
	if w.kind != kind { // such as a Deployment and a Job of one name
		w.kind = ""
	}
	w.limits = w.limits || !same(w.limit, c.OwnLimitCPUs)
	w.requests = w.requests || !same(w.request, c.RequestCPUs)
	w.on[c.Node]++
}

func same(a, b *float64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// shown is the controller; nil: it is no pod's, or its kind is not known. hosts is how many there are.
func (w *workload) shown(hosts int) *view.Workload {
	shown := &view.Workload{Kind: w.kind, Namespace: w.namespace, Name: w.name, Container: w.container}
	switch w.kind {
	case "", demand.CronJob: // a limit of a Job is that of its template in the CronJob, for the next one
		return nil
	case demand.DaemonSetOrJob:
		if !onEach(w.on, hosts) {
			return nil
		}
		shown.Kind = view.DaemonSet
	}
	if !w.limits {
		shown.LimitCPUs = w.limit
	}
	if !w.requests {
		shown.RequestCPUs = w.request
	}
	return shown
}

// onEach tells a DaemonSet from a Job, which seldom has one pod on each host. One in ten hosts may have none yet, as
// those that just came.
func onEach[Host comparable](on map[Host]int, hosts int) bool {
	return len(on) >= leastOnHosts && 10*len(on) >= 9*hosts && !several(on)
}

// several reports whether a host has more than one.
func several[Host comparable](on map[Host]int) bool {
	for _, n := range on {
		if n > 1 {
			return true
		}
	}
	return false
}
