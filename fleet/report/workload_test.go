package report

import (
	"testing"

	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// Which controller has a service's limit, by its pods' names and where they are.
func TestWorkloads(t *testing.T) {
	pod := func(name, node string, limit, request float64) sized {
		return sized{Namespace: "shop", Pod: name, Container: "app", Node: node, OwnLimitCPUs: &limit, RequestCPUs: &request}
	}
	for name, c := range map[string]struct {
		of    []sized
		hosts int
		want  *view.Workload
	}{
		"a Deployment": {[]sized{pod("cart-7d9c5b8f6-x2x4x", "a", 2, 1), pod("cart-7d9c5b8f6-b2x4x", "a", 2, 1)}, 9,
			&view.Workload{Kind: "Deployment", Namespace: "shop", Name: "cart", Container: "app", LimitCPUs: new(2.0),
				RequestCPUs: new(1.0)}},
		"limits that differ": {[]sized{pod("db-0", "a", 2, 1), pod("db-1", "b", 4, 1)}, 9,
			&view.Workload{Kind: "StatefulSet", Namespace: "shop", Name: "db", Container: "app", RequestCPUs: new(1.0)}},
		"a DaemonSet": {
			[]sized{pod("log-x2x4x", "a", 1, 1), pod("log-b2x4x", "b", 1, 1), pod("log-c2x4x", "c", 1, 1)}, 3,
			&view.Workload{Kind: "DaemonSet", Namespace: "shop", Name: "log", Container: "app", LimitCPUs: new(1.0),
				RequestCPUs: new(1.0)}},
		"a Job": {
			[]sized{pod("job-x2x4x", "a", 1, 1), pod("job-b2x4x", "a", 1, 1), pod("job-c2x4x", "c", 1, 1)}, 3, nil},
		"a CronJob":                   {[]sized{pod("job-29415600-x2x4x", "a", 1, 1)}, 1, nil},
		"a pod of its own":            {[]sized{pod("shell", "a", 1, 1)}, 1, nil},
		"a Deployment and a Job":      {[]sized{pod("cart-7d9c5b8f6-x2x4x", "a", 2, 1), pod("cart-x2x4x", "a", 2, 1)}, 9, nil},
		"not of Kubernetes":           {[]sized{{Container: "app"}}, 1, nil},
		"a namespace that is unknown": {[]sized{{Pod: "db-0", Container: "app"}}, 1, nil},
	} {
		var w workload
		for i := range c.of {
			w.add(&c.of[i])
		}
		got := w.shown(c.hosts)
		if (got == nil) != (c.want == nil) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
			continue
		}
		if got != nil && (got.Kind != c.want.Kind || got.Namespace != c.want.Namespace || got.Name != c.want.Name ||
			got.Container != c.want.Container ||
			!same(got.LimitCPUs, c.want.LimitCPUs) || !same(got.RequestCPUs, c.want.RequestCPUs)) {
			t.Errorf("%s: %+v, want %+v", name, *got, *c.want)
		}
	}
}
