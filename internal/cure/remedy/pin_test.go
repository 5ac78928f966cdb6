package remedy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
)

// configs are the kernels that tests run on. The v2 one clears a populated
// cpuset, as kernels since 7.0 do: only there can the way back be to the byte.
func configs(cpus string) map[string]cgroupmodel.Config {
	v2, together := cgroupmodel.V2(cpus), cgroupmodel.V1(cpus)
	v2.ClearsPopulated, together.Together = true, true
	return map[string]cgroupmodel.Config{"v1": cgroupmodel.V1(cpus), "v1 together": together, "v2": v2}
}

// onEach runs a test on a host with two limited containers in /a and one slice.
func onEach(t *testing.T, cpus string, test func(t *testing.T, h *host, target container.Container)) {
	for name, config := range configs(cpus) {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, config, t.TempDir())
			h.hand("/", cgroup.CPU, cgroup.CPUSet)
			h.make("/a")
			h.hand("/a", cgroup.CPU, cgroup.CPUSet)
			for _, path := range []string{"/a/web", "/a/db", "/slice"} {
				h.make(path)
			}
			h.limit("/a/web", 1)
			target := h.run("/a/web", 10)
			h.run("/a/db", 11)
			h.run("/slice", 12)
			h.k.Spawn("/", 1)
			test(t, h, target)
		})
	}
}

func TestPinGivesExclusiveCPUsAndRestoreGivesThemBack(t *testing.T) {
	for _, cpus := range []string{"0-1", "0-2", "0-7", "2-5"} {
		onEach(t, cpus, func(t *testing.T, h *host, target container.Container) {
			before := h.k.Snapshot()
			p, err := Make(h.facts(), target, Request{Kind: Pin})
			if err != nil {
				t.Fatal(err)
			}
			if p.CPUs.Size() != 1 || p.CPUs.Contains(h.facts().Machine.CPUs[0].ID) {
				t.Fatalf("pinned to %s of %s", p.CPUs, cpus)
			}
			h.apply(p)
			if wrong := h.exclusive(target, p.CPUs); len(wrong) > 0 {
				t.Fatal(wrong)
			}
			if l, err := cgroup.ReadLimit(h.k, "/a/web"); err != nil || l.Limited() {
				t.Fatalf("limit %v, %v: want none", l, err)
			}
			if !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.HasPrefix(w, "1 process in the root") }) {
				t.Errorf("the process in the root is not counted: %q", p.Warnings)
			}
			h.restore("")
			if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
				t.Fatal(diff)
			}
		})
	}
}

// refusal makes a plan that must be refused.
func refusal(t *testing.T, f hoststate.Facts, target container.Container, r Request) *Refused {
	t.Helper()
	p, err := Make(f, target, r)
	var refused *Refused
	if !errors.As(err, &refused) {
		t.Fatalf("want a refusal, got %v and %+v", err, p.Changes)
	}
	return refused
}

func TestPinRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(h *host)
		r       Request
		want    string
	}{
		"too many": {r: Request{CPUs: 4}, want: "4 CPUs wanted"},
		"negative": {r: Request{CPUs: -1}, want: "makes no sense"},
		"no limit": {arrange: func(h *host) { h.write(cgroup.CPU, "/a/web", limitFile(h), "-1") }, want: "nothing is throttled"},
		"requests of others": {arrange: func(h *host) { h.shares("/a/db", 2048); h.shares("/slice", 1536) },
			want: "3 CPUs would be left (0-1,3) for 2 other containers that need 3.5 CPUs"},
		"use of others": {arrange: func(h *host) { h.options.Used = map[string]float64{"/a/db": 1.9, "/slice": 1.2} },
			want: "need 3.1 CPUs"},
		"narrow neighbour": {arrange: func(h *host) { h.write(cgroup.CPUSet, "/slice", cgroup.FileCPUs, "1-3") },
			want: "the cpuset /slice has 2-3"},
		"outside the scope": {arrange: func(h *host) { h.options.Scope = "/other" }, want: "outside the scope"},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, "0-3", func(t *testing.T, h *host, target container.Container) {
				if c.arrange != nil {
					if name == "no limit" && h.v == cgroup.V2 {
						t.Skip("the arrangement is v1's")
					}
					c.arrange(h)
				}
				c.r.Kind = Pin
				if got := refusal(t, h.facts(), target, c.r).Error(); !strings.Contains(got, c.want) {
					t.Errorf("got %q, want %q in it", got, c.want)
				}
			})
		})
	}
}

func limitFile(h *host) string { return cgroup.LimitFiles(h.v)[0] }

// A systemd unit on v1 has no cpuset of its own, nor has a cgroup that exists in the
// cpu hierarchy only.
func TestPinMakesACpusetWhereThereIsNone(t *testing.T) {
	for scope, want := range map[string]string{"": "/unthrottle-run-units-web", "/run": "/run/units/web", "/run/units": ""} {
		t.Run("scope "+scope, func(t *testing.T) {
			h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
			h.options.Scope = scope
			for _, path := range []string{"/run", "/run/units", "/run/units/web", "/run/units/db"} {
				h.makeIn(cgroup.CPU, path)
			}
			h.limit("/run/units/web", 2)
			target := h.run("/run/units/web", 10)
			h.run("/run/units/db", 11)
			h.k.Fork(10, 12)
			before := h.k.Snapshot()
			if want == "" {
				if why := refusal(t, h.facts(), target, Request{Kind: Pin}).Error(); !strings.Contains(why,
					"cannot be made inside the scope") {
					t.Error(why)
				}
				return
			}
			p, err := Make(h.facts(), target, Request{Kind: Pin})
			if err != nil {
				t.Fatal(err)
			}
			h.apply(p)
			if at, _ := h.k.At(12, cgroup.CPUSet); at != want {
				t.Errorf("its tasks are in %s, want %s", at, want)
			}
			if wrong := h.exclusive(target, p.CPUs); len(wrong) > 0 {
				t.Error(wrong)
			}
			if r := h.restore(""); len(r.Skipped) > 0 {
				t.Error(r.Skipped)
			}
			if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
				t.Error(diff)
			}
		})
	}
}
