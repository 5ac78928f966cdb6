package remedy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
)

// Strange names are data, and come out escaped.
func TestStrangeNames(t *testing.T) {
	for _, name := range []string{"a b", "\x1b[31m", "..b", "\xff\xfe", strings.Repeat("x", 255), `q"q`} {
		h := newHost(t, configs("0-3")["v2"], t.TempDir())
		h.hand("/", cgroup.CPU, cgroup.CPUSet)
		path := "/" + name
		h.make(path)
		h.make("/other")
		h.limit(path, 1)
		c := h.run(path, 10)
		h.run("/other", 11)
		before := h.k.Snapshot()
		p, err := Make(h.facts(), c, Request{Kind: Pin})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		h.apply(p)
		if wrong := h.exclusive(c, p.CPUs); len(wrong) > 0 {
			t.Errorf("%q: %q", name, wrong)
		}
		why := refusal(t, h.facts(), c, Request{Kind: Pin}).Error()
		if !strings.Contains(why, "restore it first") || strings.ContainsAny(why, "\n\x1b") || strings.ToValidUTF8(why, "") != why {
			t.Errorf("%q: message %q", name, why)
		}
		h.restore("")
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Errorf("%q: %q", name, diff)
		}
	}
}

// cgroups that vanish while facts are gathered are passed over, whichever read
// they vanish before.
func TestGatherWhileCgroupsVanish(t *testing.T) {
	for name, config := range configs("0-3") {
		for vanishAt := 1; ; vanishAt++ {
			h := newHost(t, config, t.TempDir())
			h.hand("/", cgroup.CPU, cgroup.CPUSet)
			h.make("/gone")
			h.make("/stays")
			h.contain("/gone")
			h.run("/stays", 10)
			seen, removed := 0, false
			h.k.Before = func(op cgroupmodel.Op) error {
				if op.Path != "/gone" || op.Changes() {
					return nil
				}
				if seen++; seen == vanishAt {
					h.k.Before = nil
					h.k.Remove(cgroup.CPU, "/gone")
					if !h.oneTree {
						h.k.Remove(cgroup.CPUSet, "/gone")
					}
					removed = true
				}
				return nil
			}
			f := h.facts()
			if _, ok := f.Groups["/stays"]; !ok || len(f.Sets) == 0 {
				t.Fatalf("%s: removed before read %d: the other cgroup is missing", name, vanishAt)
			}
			if !removed {
				if vanishAt < 5 {
					t.Fatalf("%s: only %d reads: the test shows nothing", name, vanishAt)
				}
				break
			}
		}
	}
}

func TestGatherIsBounded(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	for _, path := range []string{"/a", "/b", "/c"} {
		h.make(path)
	}
	o := gather.Options{Root: h.root, Max: 3}
	_, err := gather.From(context.Background(), h.k, false, nil, o)
	if !errors.Is(err, cgroup.ErrTooMuch) {
		t.Errorf("4 cgroups, at most 3: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o.Max = 0
	if _, err := gather.From(ctx, h.k, false, nil, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A process outside our PID namespace (0 in cgroup.procs) cannot be moved.
func TestForeignProcesses(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	h.makeIn(cgroup.CPU, "/unit")
	h.limit("/unit", 1)
	h.makeIn(cgroup.CPU, "/unit/inner")
	h.k.SpawnForeign("/unit/inner")
	c := h.contain("/unit")
	if why := refusal(t, h.facts(), c, Request{Kind: Pin}).Error(); !strings.Contains(why, "outside our PID namespace") {
		t.Error(why)
	}
	if _, err := Make(h.facts(), c, Request{Kind: Raise}); err != nil {
		t.Errorf("raise needs no PIDs: %v", err)
	}
}

// Containers of one pod may share a cpuset on v1; then none of them owns it.
func TestSharedCpusets(t *testing.T) {
	h := newHost(t, cgroupmodel.V1("0-3"), t.TempDir())
	h.makeIn(cgroup.CPUSet, "/pod")
	h.write(cgroup.CPUSet, "/pod", cgroup.FileCPUs, "0-3")
	h.write(cgroup.CPUSet, "/pod", cgroup.FileMems, "0")
	for _, path := range []string{"/pod", "/pod/a", "/pod/b"} {
		h.makeIn(cgroup.CPU, path)
	}
	var all []container.Container
	for i, path := range []string{"/pod/a", "/pod/b"} {
		c := h.run(path, 10+i)
		if err := h.k.Attach(cgroup.CPUSet, "/pod", 10+i); err != nil {
			t.Fatal(err)
		}
		c.Group.CPUSetPath = "/pod"
		h.containers[i] = c
		all = append(all, c)
	}
	h.limit("/pod/a", 1)
	for _, c := range h.facts().Containers {
		if c.OwnSet {
			t.Errorf("%s is said to have a cpuset of its own", c.Group.Path)
		}
	}
	// b would stay in /pod, above the cpuset that a would get.
	if why := refusal(t, h.facts(), all[0], Request{Kind: Pin}).Error(); !strings.Contains(why, "/pod above it holds 1 process") {
		t.Error(why)
	}
	h.k.Exit(11)
	p, err := Make(h.facts(), all[0], Request{Kind: Pin})
	if err != nil {
		t.Fatal(err)
	}
	h.apply(p)
	if wrong := h.exclusive(all[0], p.CPUs); len(wrong) > 0 {
		t.Error(wrong)
	}
}
