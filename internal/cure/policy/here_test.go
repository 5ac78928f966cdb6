package policy

import (
	"reflect"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// What this host refuses is refused alike for fix, which plans, and for commands that change nothing: by the same reasons,
// with the same recommendation.
func TestHereIsOneRule(t *testing.T) {
	for _, tc := range []struct {
		name    string
		cpus    int
		limit   float64
		used    float64
		change  func(*hoststate.Facts)
		refused map[string]string // by remedy, the reason
		chosen  string
	}{
		{"all can be done", 8, 2, 1, nil, nil, forecast.Burst},
		{"a kernel without burst", 8, 2, 1, func(f *hoststate.Facts) { f.HasBurst = false },
			map[string]string{forecast.Burst: "this kernel has no burst (since 5.14); try --remedy pin or raise"}, forecast.Narrow},
		{"nothing to save up", 8, 2, 2, nil,
			map[string]string{forecast.Burst: "it used 2 CPUs of 2 CPUs on average, so that a burst had no unused " +
				"time to spend; it needs more CPU: try --remedy raise or pin"}, forecast.Narrow},
		{"no cpuset controller", 8, 2, 1, func(f *hoststate.Facts) { f.CPUSetVersion = 0 },
			map[string]string{forecast.Narrow: "the cpuset controller is not mounted here",
				forecast.Pin: "the cpuset controller is not mounted here"}, forecast.Burst},
		{"an ancestor's quota binds", 8, 2, 1, func(f *hoststate.Facts) {
			g := f.Groups["/"]
			g.Limit = cgroup.Limit{Quota: 150 * time.Millisecond, Period: 100 * time.Millisecond}
			f.Groups["/"] = g
		}, map[string]string{forecast.Burst: "the quota that binds is that of /, which is neither a pod's nor below " +
			"a cgroup that you named: /; name a cgroup above it with --lift-below",
			forecast.Pin: "the quota of 1.5 CPUs at / would still bind, and it is neither a pod's nor below a cgroup " +
				"that you named: /; name a cgroup above it with --lift-below"}, forecast.Narrow},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, a := facts(t, tc.cpus, tc.limit)
			if tc.change != nil {
				tc.change(&f)
			}
			rows := made(tc.limit, none(90, tc.limit), burst(30, tc.limit), narrow(50, tc.limit), pin(60, int(tc.limit)))
			o := seen(a, tc.limit, tc.used, 400*time.Millisecond)
			o.Window, o.StoppedLow, o.StoppedHigh = 5*o.Window, new(5**o.StoppedLow), new(5**o.StoppedHigh) // as long as fix looks
			p, err := Propose(o, f, Wish{Auto: true}, &Known{Forecast: rows})
			if err != nil || p.Choice == nil {
				t.Fatal(p.Why, err)
			}
			observed := Observed(o)
			refused, err := Here{Facts: f, Target: a, Settings: remedy.Request{Observed: &observed}}.Refused(rows)
			if err != nil {
				t.Fatal(err)
			}
			if got := Choose(rows, Terms{Refused: refused}); !reflect.DeepEqual(got, *p.Choice) {
				t.Errorf("explain and forecast: %+v\nfix: %+v", got, *p.Choice)
			}
			got := map[string]string{}
			for i, why := range refused {
				got[rows.Rows[i].Remedy.Name] = why
			}
			if len(got) != len(tc.refused) || len(got) > 0 && !reflect.DeepEqual(got, tc.refused) {
				t.Errorf("refused %q, want %q", got, tc.refused)
			}
			if name := rows.Rows[p.Choice.Row].Remedy.Name; name != tc.chosen || p.Plan == nil || string(p.Plan.Remedy) != tc.chosen {
				t.Errorf("chosen %s, want %s: %s", name, tc.chosen, p.Why)
			}
			for _, n := range p.Not {
				if want := tc.refused[string(n.Remedy)]; want != "" && n.Why != want {
					t.Errorf("not %s: %s, want %s", n.Remedy, n.Why, want)
				}
			}
		})
	}
}

// Where every row that would help is refused, the answer says so.
func TestRefusedHelp(t *testing.T) {
	rows := made(1, none(90, 1), burst(30, 1), narrow(90, 1))
	if c := Choose(rows, Terms{Refused: map[int]string{1: "no"}}); c.Answer != AnswerLeave ||
		c.Why != "no remedy that can be done here shortens p99 of pool get of 90.0 ms by more than a tenth" {
		t.Errorf("%s: %s", c.Answer, c.Why)
	}
	if c := Choose(rows, Terms{Refused: map[int]string{2: "no"}, Unseen: "it is a file",
		Notes: []string{"a note"}}); c.Row != 1 || c.Unseen != "it is a file" || len(c.Notes) != 1 {
		t.Errorf("%+v", c)
	}
}

// A look in which the whole limit was used may have been a peak: a trial tries bursts all the same, and recommends none without one.
func TestATrialTriesABurstOfWhatUsedItsLimit(t *testing.T) {
	f, a := facts(t, 8, 2)
	rows := made(2, none(90, 2), burst(30, 2), narrow(50, 2))
	o := seen(a, 2, 2, 400*time.Millisecond)
	o.Window = 6 * time.Second
	candidates, _, err := Candidates(o, f, Wish{Auto: true}, &Known{Forecast: rows})
	if err != nil || len(candidates) != 2 || candidates[0].Plan.Remedy != remedy.Burst || len(candidates[0].Plan.Warnings) == 0 {
		t.Errorf("%+v, %v", candidates, err)
	}
}

// A sibling that spends the quota of a common parent is a candidate of a trial, the second to be tried, and of no forecast.
func TestCapIsACandidate(t *testing.T) {
	f, a := facts(t, 8, 2)
	if c, err := (Here{Facts: f, Target: a}).Cap(); c != nil || err != nil {
		t.Fatalf("without a common quota: %+v, %v", c, err)
	}
	own, spender := 0.2, 1.2
	f.Scope, f.Groups["/pod/a"], f.Sets["/pod/a"] = "/", f.Groups["/a"], f.Sets["/a"]
	f.Groups["/pod"] = hoststate.Group{Limit: cgroup.Limit{Quota: 150 * time.Millisecond, Period: 100 * time.Millisecond}}
	f.Groups["/pod/side"] = hoststate.Group{Limit: cgroup.Unlimited(), UsedCPUs: &spender}
	g := f.Groups["/pod/a"]
	g.UsedCPUs = &own
	f.Groups["/pod/a"] = g
	a.Group.Path, a.Group.CPUSetPath = "/pod/a", "/pod/a"
	rows := made(2, none(90, 2), burst(30, 2), narrow(50, 2))
	candidates, _, err := Candidates(seen(a, 2, 0.2, 400*time.Millisecond), f, Wish{Auto: true}, &Known{Forecast: rows})
	if err != nil || len(candidates) < 2 {
		t.Fatal(len(candidates), err)
	}
	if c := candidates[1]; c.Name != "cap side at 1.1" || c.Row != -1 || c.ForecastMs != nil || c.Change <= candidates[0].Change {
		t.Errorf("%+v", c)
	}
}
