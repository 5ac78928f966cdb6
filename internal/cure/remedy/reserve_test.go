package remedy

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/topology"
)

// The reserve follows what the host's own services use, in whole cores, past
// exclusive CPUs, up to a quarter of the machine.
func TestReserveFollowsTheSystem(t *testing.T) {
	for name, tc := range map[string]struct {
		path, id string
		used     float64
		limited  bool
		pinned   string
		want     string
	}{
		"idle":                      {"/system.slice/sshd.service", "", 0.1, false, "", "0-1"},
		"busy":                      {"/system.slice/sshd.service", "", 2, false, "", "0-3"},
		"very busy: a quarter":      {"/system.slice/sshd.service", "", 20, false, "", "0-7"},
		"a core is taken":           {"/system.slice/sshd.service", "", 2, false, "2-3", "0-1,4-5"},
		"a container there":         {"/system.slice/docker-x.scope", "x", 9, false, "", "0-1"},
		"a service with a limit":    {"/system.slice/db.service", "", 9, true, "", "0-1"},
		"not the host's own":        {"/shop/web", "", 9, false, "", "0-1"},
		"not measured, so not more": {"/system.slice/sshd.service", "", -1, false, "", "0-1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t, "0-31")
			f := hoststate.Facts{Machine: m, Groups: map[string]hoststate.Group{"/": {Limit: cgroup.Unlimited()}},
				Sets: map[string]hoststate.Set{"/": {}}}
			top := f.Sets["/"]
			top.Effective = m.Online()
			f.Sets["/"] = top
			g := hoststate.Group{Limit: cgroup.Unlimited()}
			if tc.used >= 0 {
				g.UsedCPUs = &tc.used
			}
			if tc.limited {
				g.Limit.Quota = g.Limit.Period
			}
			f.Groups[tc.path] = g
			c := container.Container{Group: cgroup.Group{Path: tc.path, CPUSetPath: "/"}, ID: tc.id}
			f.Containers = []hoststate.Container{{Container: c}}
			if tc.pinned != "" {
				f.Held = []txn.InForce{{ID: "a", Target: "/x", Remedy: string(Pin),
					Parameters: map[string]string{paramCPUs: tc.pinned, paramSet: "/x"}}}
			}
			if got := (&planner{f: decoded(t, f)}).reserve(); got.String() != tc.want {
				t.Errorf("reserve %s, want %s", got, tc.want)
			}
			asked, err := topology.ParseList("5")
			if err != nil {
				t.Fatal(err)
			}
			if got := (&planner{f: decoded(t, f), r: Request{Reserve: &asked}}).reserve(); !got.Equals(asked) {
				t.Errorf("asked for 5, got %s", got)
			}
		})
	}
}
