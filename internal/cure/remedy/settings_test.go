package remedy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
)

// everything is a host on which all can be applied.
func everything() features.Report {
	return features.Report{
		CPUs: 4, Root: true, Kernel: features.Kernel{Burst: features.Yes, BTF: features.Yes, SchedExt: features.Yes},
		Controllers: []features.Controller{
			{Name: cgroup.CPU, Version: cgroup.V2, Dir: "/c", Writable: true},
			{Name: cgroup.CPUSet, Version: cgroup.V2, Dir: "/c", Writable: true},
		},
		Managers: []features.Manager{{Name: "systemd"}},
		Means:    features.Means{Idle: features.Yes, ThreadsPerCore: 2, NUMANodes: 2},
	}
}

var allAbilities = []string{"pin", "pin --class hybrid", "pin --lends", "pin --irqs", "pin --realtime",
	"pin --full-cores", "pin --idle-siblings",
	"pin --mems", "narrow", "narrow --via sched_ext", "burst", "period", "cap", "weight", "raise", "secondary", "apply --system"}

func TestAbilities(t *testing.T) {
	pins := slices.DeleteFunc(slices.Clone(allAbilities),
		func(s string) bool { return !strings.HasPrefix(s, "pin") && s != "apply --system" })
	for _, tc := range []struct {
		name   string
		change func(*features.Report)
		cannot []string
		why    string
	}{
		{"everything", func(*features.Report) {}, nil, ""},
		{"one CPU", func(r *features.Report) { r.CPUs = 1 }, pins, "none would be left"},
		{"no burst", func(r *features.Report) { r.Kernel.Burst = features.No }, []string{"burst"}, "5.14"},
		{"no cpu.idle", func(r *features.Report) { r.Means.Idle = features.No }, nil, ""},
		{"no cpuset", func(r *features.Report) { r.Controllers = r.Controllers[:1] },
			slices.Insert(slices.Clone(pins), len(pins)-1, "narrow", "narrow --via sched_ext"), "not mounted"},
		{"ordinary user", func(r *features.Report) { r.Controllers[0].Writable = false }, allAbilities, "run as root"},
		{"no root", func(r *features.Report) { r.Root = false }, []string{"pin --realtime", "narrow --via sched_ext"}, "not root"},
		{"no realtime", func(r *features.Report) { r.Means.NoRealtime = "it is -1" }, []string{"pin --realtime"}, "it is -1"},
		{"no interrupts", func(r *features.Report) { r.Means.NoInterrupts = "read-only" }, []string{"pin --irqs"}, "read-only"},
		{"no cores", func(r *features.Report) { r.Means.ThreadsPerCore = 0 },
			[]string{"pin --full-cores", "pin --idle-siblings"}, "share a core"},
		{"no systemd", func(r *features.Report) { r.Managers = nil }, []string{"apply --system"}, "systemd does not run"},
	} {
		r := everything()
		tc.change(&r)
		var names, cannot []string
		for _, a := range Abilities(r) {
			names = append(names, a.What)
			if a.Why == "" {
				t.Errorf("%s: %s: no reason given", tc.name, a.What)
			}
			if a.Can {
				continue
			}
			cannot = append(cannot, a.What)
			if !strings.Contains(a.Why, tc.why) {
				t.Errorf("%s: %s: %q does not say %q", tc.name, a.What, a.Why, tc.why)
			}
		}
		if d := cmp.Diff(allAbilities, names); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
		if d := cmp.Diff(tc.cannot, cannot); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}

func TestSettingsBelongToRemedies(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings() {
		if seen[s.Flag] || len(s.Of) == 0 {
			t.Errorf("--%s: twice, or of no remedy", s.Flag)
		}
		seen[s.Flag] = true
		for _, k := range s.Of {
			if !slices.Contains(Kinds(), k) || !s.Has(k) {
				t.Errorf("--%s: there is no remedy %s", s.Flag, k)
			}
		}
	}
	if got := Names(); got != "pin, narrow, burst, period, cap, weight, raise or secondary" {
		t.Errorf("%q", got)
	}
}
