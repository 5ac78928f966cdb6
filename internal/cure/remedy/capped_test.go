package remedy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// unlimit takes the quota off the container.
func unlimit(h *host) {
	v, _ := h.k.Version(cgroup.CPU)
	for _, w := range cgroup.LimitWrites(v, cgroup.Limit{}, cgroup.Limit{Quota: -1, Period: 100 * time.Millisecond}, false) {
		h.write(cgroup.CPU, "/a/web", w.File, w.Value)
	}
}

var canSchedExt = hoststate.SchedExt{Can: true}

// By sched_ext one setting changes, the cap: the quota stays for the moment when the scheduler ends.
func TestNarrowBySchedExt(t *testing.T) {
	for _, tc := range []struct {
		limit float64
		r     Request
		want  string
	}{
		{2, Request{Via: ViaSchedExt}, "2 CPUs, credit 400ms"},
		{2.5, Request{Via: ViaAuto}, "2.5 CPUs, credit 500ms"},
		{0.3, Request{Credit: 2 * time.Second}, "0.3 CPUs, credit 2s"},
		{4, Request{Cap: 2.5}, "2.5 CPUs, credit 500ms"},
		{4, Request{Via: ViaSchedExt, CPUs: 3, Credit: time.Second}, "3 CPUs, credit 1s"},
		{0, Request{Via: ViaSchedExt, CPUs: 3}, "3 CPUs, credit 600ms"},
	} {
		onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
			if tc.limit > 0 {
				h.limit("/a/web", tc.limit)
			} else {
				unlimit(h)
			}
			f := h.facts()
			f.SchedExt = canSchedExt
			tc.r.Kind = Narrow
			p := must(t)(Make(f, target, tc.r))
			if len(p.Changes) != 1 || p.Changes[0].Kind != change.KindWidth || p.Changes[0].To != tc.want ||
				p.Parameters[paramCap] != tc.want {
				t.Errorf("%+v: %+v", tc.r, p.Changes)
			}
			// In force it has no CPUs of its own, which others would have to leave.
			f.Held = []txn.InForce{{ID: "1", Target: "/a/web", Remedy: string(Narrow), Parameters: p.Parameters, Changes: p.Changes}}
			held, err := Decode(f.Held[0], "")
			if err != nil || held.Cap.String() != tc.want || !held.Placed().IsEmpty() {
				t.Errorf("%+v, %v", held, err)
			}
			if refused := refusal(t, f, target, tc.r); !strings.Contains(refused.Error(), "is in force already") {
				t.Error(refused)
			}
			started := f // since then
			started.Drift = []txn.DriftItem{{ID: "1", Path: "/a/web", Gone: true}}
			if refused := refusal(t, started, target, tc.r); !strings.Contains(refused.Error(), "had this path before") {
				t.Error(refused)
			}
			f.Held[0].Trial = &txn.Trial{Of: "1", PID: 7, State: txn.TrialRunning}
			if refused := refusal(t, f, target, tc.r); !strings.Contains(refused.Error(), "is on trial: process 7 tries remedies on it") ||
				strings.Contains(refused.Error(), "restore it first") {
				t.Error(refused)
			}
		})
	}
}

// A pod's quota is a cap too, with the credit of the container in it. Another ancestor's stays as it is, and that is said.
func TestNarrowBySchedExtCapsThePod(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		h.limit("/a/web", 2)
		h.limit("/a", 3)
		f := h.facts()
		f.SchedExt = canSchedExt
		r := Request{Kind: Narrow, Via: ViaSchedExt, Credit: time.Second}
		if p := must(t)(Make(f, target, r)); len(p.Changes) != 1 || len(p.Skipped) != 1 || p.Skipped[0].Path != "/a" {
			t.Errorf("%+v", p)
		}
		f.Named = "/"
		if p := must(t)(Make(f, target, r)); len(p.Changes) != 2 || p.Changes[1].Path != "/a" || p.Changes[1].To != "3 CPUs, credit 1s" {
			t.Errorf("%+v", p)
		}
	})
}

func TestNarrowBySchedExtRefused(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		h.limit("/a/web", 2)
		for want, r := range map[string]Request{
			"above the 8 CPUs of this host": {Via: ViaSchedExt, CPUs: 9},
			"more than its limit of 2 CPUs": {Via: ViaSchedExt, Cap: 2.5},
			"a cap in CPUs of -1":           {Via: ViaSchedExt, Cap: -1},
			"a cap of 0.001 CPUs":           {Via: ViaSchedExt, Cap: 0.001},
			"a credit of 2h0m0s":            {Via: ViaSchedExt, Credit: 2 * time.Hour},
			"has no burst, no period":       {Via: ViaSchedExt, Burst: time.Second},
			"no CPUs of its own":            {Via: ViaSchedExt, Mems: true},
			"only the scheduler":            {Via: ViaCPUSet, Credit: time.Second},
			"there is no":                   {Via: "magic"},
		} {
			f := h.facts()
			f.SchedExt, r.Kind = canSchedExt, Narrow
			if refused := refusal(t, f, target, r); !strings.Contains(refused.Error(), want) {
				t.Errorf("%+v: %v, want %q", r, refused, want)
			}
		}
		// Without sched_ext: a refusal that says why and names the cpuset, or the cpuset with the reason.
		f := h.facts()
		f.SchedExt = hoststate.SchedExt{Why: "the kernel has no sched_ext"}
		for want, r := range map[string]Request{
			"the kernel has no sched_ext; --via auto uses a cpuset": {Kind: Narrow, Via: ViaSchedExt},
			"a cpuset has whole CPUs only":                          {Kind: Narrow, Via: ViaAuto, Cap: 1.5},
		} {
			if refused := refusal(t, f, target, r); !strings.Contains(refused.Error(), want) {
				t.Errorf("%v, want %q", refused, want)
			}
		}
		p := must(t)(Make(f, target, Request{Kind: Narrow, Via: ViaAuto, Credit: time.Second}))
		if p.Parameters[paramCPUs] == "" ||
			!strings.Contains(strings.Join(p.Warnings, "\n"), "by a cpuset, which saves no credit: the kernel has no sched_ext") {
			t.Errorf("%+v", p)
		}
	})
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		unlimit(h)
		f := h.facts()
		f.SchedExt = canSchedExt
		if refused := refusal(t, f, target, Request{Kind: Narrow, Via: ViaSchedExt}); !strings.Contains(refused.Error(),
			"it has no limit") {
			t.Error(refused)
		}
	})
}

// A forecast's row with credit is asked of a plan as it was simulated.
func TestRowWithCredit(t *testing.T) {
	row := forecast.Remedy{Name: forecast.Narrow, Credit: time.Second}
	r, refused := RequestOf(row, Request{})
	if refused != "" || r.Via != ViaSchedExt || r.Credit != time.Second {
		t.Errorf("%+v, %s", r, refused)
	}
	rows := func(can bool) (credits []time.Duration) {
		for _, row := range forecast.NarrowEffect.Rows(forecast.Container{Limit: 2, SchedExt: can}) {
			credits = append(credits, row.Credit)
		}
		return credits
	}
	if without, with := rows(false), rows(true); len(without) != 1 ||
		!slices.Equal(with, []time.Duration{0, 400 * time.Millisecond, 4 * time.Second}) {
		t.Errorf("%v, %v", without, with)
	}
}

func TestSchedExtHere(t *testing.T) {
	good := features.Kernel{SchedExt: features.Yes, BTF: features.Yes}
	for want, k := range map[string]features.Kernel{
		"the kernel has no sched_ext": {SchedExt: features.No, BTF: features.Yes},
		"not known":                   {SchedExt: features.Unknown},
		"another sched_ext scheduler": {SchedExt: features.Yes, BTF: features.Yes, SchedExtScheduler: "lavd"},
		"the kernel has no BTF":       {SchedExt: features.Yes, BTF: features.No},
	} {
		if can, why := SchedExtHere(k, true); can || !strings.Contains(why, want) {
			t.Errorf("%+v: %s", k, why)
		}
	}
	if can, why := SchedExtHere(good, false); can || !strings.Contains(why, "not root") {
		t.Error(why)
	}
	good.SchedExtScheduler = "unthrottle"
	if can, why := SchedExtHere(good, true); !can {
		t.Error(why)
	}
}
