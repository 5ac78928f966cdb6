package remedy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// A pod of 0.6 with a light service and a backup that spends it: the backup gets what the others leave twice over.
func TestCapOfASibling(t *testing.T) {
	const pod = "/kubepods/pod" + podUID
	for name, c := range map[string]struct {
		v       cgroup.Version
		limits  map[string]float64
		used    map[string]float64
		uid     string
		r       Request
		want    []string
		refused string
	}{
		"what the others leave": {v: cgroup.V2, uid: podUID, used: map[string]float64{pod: 0.57, pod + "/web": 0.08, pod + "/backup": 0.49},
			want: []string{pod + "/backup cpu.max 8800 20000"}},
		"on v1": {v: cgroup.V1, uid: podUID, used: map[string]float64{pod: 0.57, pod + "/web": 0.08, pod + "/backup": 0.49},
			want: []string{pod + "/backup cpu.cfs_period_us 20000", pod + "/backup cpu.cfs_quota_us 8800"}},
		"by number": {v: cgroup.V2, uid: podUID, r: Request{To: 0.3, Sibling: "backup"}, want: []string{pod + "/backup cpu.max 6000 20000"}},
		"so little that a quota of 1 ms needs a longer period": {v: cgroup.V2, uid: podUID, r: Request{To: 0.02, Sibling: "backup"},
			want: []string{pod + "/backup cpu.max 1000 50000"}},
		"where the least quota is no whole number of the period's parts": {v: cgroup.V2, uid: podUID, r: Request{To: 0.03, Sibling: "backup"},
			want: []string{pod + "/backup cpu.max 1000 33334"}},
		"the one that uses most is chosen": {v: cgroup.V2, uid: podUID,
			limits: map[string]float64{pod: 0.6, pod + "/web": 0, pod + "/backup": 0, pod + "/log": 0},
			used:   map[string]float64{pod: 0.5, pod + "/web": 0.05, pod + "/backup": 0.42, pod + "/log": 0.03},
			want:   []string{pod + "/backup cpu.max 8800 20000"}},
		"of what is in it, where a pod's own use was not measured": {v: cgroup.V2, uid: podUID,
			used: map[string]float64{pod + "/web": 0.08, pod + "/backup": 0.49}, want: []string{pod + "/backup cpu.max 8800 20000"}},
		"not where it spends the quota itself": {v: cgroup.V2, uid: podUID,
			used: map[string]float64{pod: 0.57, pod + "/web": 0.49, pod + "/backup": 0.08}, refused: "no container beside it uses more"},
		"not where the sibling would lose most of what it does": {v: cgroup.V2, uid: podUID,
			used: map[string]float64{pod: 0.6, pod + "/web": 0.25, pod + "/backup": 0.35}, refused: "would lose more than half"},
		"not measured": {v: cgroup.V2, uid: podUID, refused: "was not measured"},
		"no common quota": {v: cgroup.V2, uid: podUID, limits: map[string]float64{pod: 0, pod + "/web": 0.5, pod + "/backup": 0},
			used: map[string]float64{pod + "/web": 0.1, pod + "/backup": 0.5}, refused: "shares no quota"},
		"a slice that the user did not name": {v: cgroup.V2,
			used:    map[string]float64{pod: 0.57, pod + "/web": 0.08, pod + "/backup": 0.49},
			refused: "neither a pod's nor below a cgroup that you named"},
		"no such sibling":    {v: cgroup.V2, uid: podUID, r: Request{Sibling: "other", To: 0.2}, refused: `"other" shares no quota with it`},
		"no less than it is": {v: cgroup.V2, uid: podUID, r: Request{Sibling: "backup", To: 0.6}, refused: "no less than the 0.6 CPUs"},
		"it has less already": {v: cgroup.V2, uid: podUID, limits: map[string]float64{pod: 0.6, pod + "/web": 0, pod + "/backup": 0.3},
			r: Request{Sibling: "backup", To: 0.4}, refused: "has a limit of 0.3 CPUs already"},
		"v1 takes no limit below one inside": {v: cgroup.V1, uid: podUID,
			limits: map[string]float64{pod: 0.6, pod + "/web": 0, pod + "/backup": 0, pod + "/backup/job": 0.5},
			r:      Request{Sibling: "backup", To: 0.4}, refused: "cgroups inside have more"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := c.limits
			if limits == nil {
				limits = map[string]float64{pod: 0.6, pod + "/web": 0, pod + "/backup": 0}
			}
			f := tree(t, c.v, limits)
			for path, cpus := range c.used {
				g := f.Groups[path]
				g.UsedCPUs = &cpus
				f.Groups[path] = g
			}
			web := target(pod+"/web", c.uid)
			f.Containers = []hoststate.Container{{Container: web}, {Container: target(pod+"/backup", c.uid)}}
			c.r.Kind = Cap
			plan, err := Make(f, web, c.r)
			if c.refused != "" {
				if !errors.As(err, new(*Refused)) || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("%v, want %q", err, c.refused)
				}
				return
			}
			if err != nil || !slices.Equal(wrote(plan), c.want) || plan.Sibling != pod+"/backup" {
				t.Fatalf("%q, %q, %v; want %q", wrote(plan), plan.Sibling, err, c.want)
			}
			if _, _, err := notesOf(Cap, plan.Parameters); err != nil {
				t.Errorf("its parameters cannot be read again: %v", err)
			}
		})
	}
}
