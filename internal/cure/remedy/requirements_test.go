package remedy

import (
	"math"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

func TestRequests(t *testing.T) {
	pod := hoststate.Container{Container: container.Container{PodUID: podUID, Group: cgroup.Group{Path: "/c"}}}
	plain := hoststate.Container{Container: container.Container{Group: cgroup.Group{Path: "/c"}}}
	for name, c := range map[string]struct {
		v      cgroup.Version
		c      hoststate.Container
		shares uint64
		node   uint64 // weight of kubepods on v2
		want   float64
	}{
		"v1 pod of 1 CPU":                    {cgroup.V1, pod, 1024, 0, 1},
		"v1 pod of 250m":                     {cgroup.V1, pod, 256, 0, 0.25},
		"v1 default of no group":             {cgroup.V1, plain, 1024, 0, 0},
		"v1 chosen":                          {cgroup.V1, plain, 3072, 0, 3},
		"v2 default of no group":             {cgroup.V2, plain, cgroup.SharesOfWeight(100), 0, 0},
		"v2 pod of 1 CPU, older formula":     {cgroup.V2, pod, cgroup.SharesOfWeight(39), 305, 0.975},
		"v2 pod of 1 CPU, newer formula":     {cgroup.V2, pod, cgroup.SharesOfWeight(100), 502, 1},
		"v2 pod of 250m, newer formula":      {cgroup.V2, pod, cgroup.SharesOfWeight(35), 502, 0.25},
		"v2 pod, node not seen: older, more": {cgroup.V2, pod, cgroup.SharesOfWeight(100), 0, 2.537},
	} {
		f := tree(t, c.v, map[string]float64{"/c": 0})
		if c.node > 0 {
			f.Groups["/kubepods.slice"] = hoststate.Group{Shares: cgroup.SharesOfWeight(c.node)}
		}
		if got := decoded(t, f).request(c.c, c.shares); math.Abs(got-c.want) > 0.05*c.want {
			t.Errorf("%s: got %.4g CPUs, want %.4g", name, got, c.want)
		}
	}
}
