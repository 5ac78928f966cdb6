package report

import (
	"github.com/unthrottle/unthrottle/internal/demand"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// workloads are the controllers of services that are pods of Kubernetes, by the service's name.
type workloads map[string]*workload

// workload is what the pods of one service have in common.
type workload struct {
	kind, namespace, name, container string
	limit, request                   *float64
	limits, requests                 bool           // they differ
	on                               map[string]int // pods on each node
}

// add takes a container that runs now.
func (all workloads) add(c *sized) {
	if c.pod == "" || c.namespace == "" {
		return
	}
	name, kind := demand.WorkloadOf(c.pod, "")
	w := all[c.service]
	if w == nil {
		w = &workload{kind: kind, namespace: c.namespace, name: name, container: c.name, limit: c.ownLimit, request: c.request, on: map[string]int{}}
		all[c.service] = w
	}
	if w.kind != kind { // such as a Deployment and a Job of one name
		w.kind = ""
	}
	w.limits = w.limits || !same(w.limit, c.ownLimit)
	w.requests = w.requests || !same(w.request, c.request)
	w.on[c.node]++
}

func same(a, b *float64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// of is the controller of a service; nil: it is no pod's, or its kind is not known. hosts is how many there are.
func (all workloads) of(service string, hosts int) *view.Workload {
	w := all[service]
	if w == nil {
		return nil
	}
	of := view.Workload{Kind: w.kind, Namespace: w.namespace, Name: w.name, Container: w.container}
	switch w.kind {
	case "", demand.CronJob: // a limit of a Job is that of its template in the CronJob, for the next one
		return nil
	case demand.DaemonSetOrJob:
		// A Job seldom has one pod on each host.
		if len(w.on) < leastOnHosts || len(w.on) < hosts {
			return nil
		}
		for _, n := range w.on {
			if n > 1 {
				return nil
			}
		}
		of.Kind = view.DaemonSet
	}
	if !w.limits {
		of.LimitCPUs = w.limit
	}
	if !w.requests {
		of.RequestCPUs = w.request
	}
	return &of
}
