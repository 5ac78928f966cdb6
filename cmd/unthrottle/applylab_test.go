package main

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/kernel/irq/irqhost"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy/schedhost"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/topology"
)

// A pin that takes all: a core with its sibling idle, interrupts off it, its
// threads before everything else there; no other program moves them, put back as it was. In
// the lab's guest only: elsewhere a mistake would cost the machine.
func TestPinWithEverythingInTheLab(t *testing.T) {
	if !require.InLab() {
		t.Skip("needs v2: interrupts and real-time priority are set in the lab's guest only; runs in the lab")
	}
	require.CPUs(t, 16)
	tr := cgrouptest.New(t)
	busy, quiet := tr.Make("pod/busy"), tr.Make("pod/quiet")
	tr.Limit(busy, 1)
	pid := tr.Work(busy, 1)
	other := tr.Work(quiet, 0)
	lists := func() map[string]string {
		interrupts, err := irqhost.New("/proc").Interrupts()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, i := range interrupts {
			found[irq.File(i.Number)] = i.CPUs.String()
		}
		return found
	}
	policies := func() map[string]int {
		tids, err := tr.Host.Threads(cgroup.CPU, busy)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, tid := range tids {
			if p, err := schedhost.New("/proc").Read(tid); err == nil {
				found[p.String()]++
			}
		}
		return found
	}
	settings, before := tr.Settings(), lists()
	type result struct {
		Writes  []struct{ Path, File, Kind string } `json:"writes"`
		Skipped []struct{ File, Why string }        `json:"skipped"`
	}
	got := decoded[result](t, unthrottle(t, "apply", busy, "--remedy", "pin", "--idle-siblings", "--irqs", "--realtime",
		"--lift-below", tr.Top, "--state-dir", tr.StateDir, "--json"), 0)
	allowed, err := topology.ParseList(cgrouptest.Allowed(t, pid))
	if err != nil || allowed.Size() != 1 {
		t.Fatalf("it may run on %s, %v", allowed, err)
	}
	siblings, err := os.ReadFile("/sys/devices/system/cpu/cpu" + strconv.Itoa(allowed.List()[0]) + "/topology/thread_siblings_list")
	if err != nil {
		t.Fatal(err)
	}
	core, err := topology.ParseList(string(siblings))
	if err != nil {
		t.Fatal(err)
	}
	if others, err := topology.ParseList(cgrouptest.Allowed(t, other)); err != nil || !others.Intersection(core).IsEmpty() {
		t.Errorf("its core is %s, its neighbour may run on %s, %v", core, others, err)
	}
	left := 0
	for file, list := range lists() {
		set, err := topology.ParseList(list)
		if err != nil {
			t.Fatal(err)
		}
		if set.Intersection(core).IsEmpty() {
			continue
		}
		left++
		if !slices.ContainsFunc(got.Skipped, func(s struct{ File, Why string }) bool { return s.File == file }) {
			t.Errorf("%s goes to %s still, and no message says so", file, list)
		}
	}
	t.Logf("core %s, %d of %d interrupts left there, policies %v", core, left, len(before), policies())
	if now := policies(); now["other"] > 0 || now["rr 1"] == 0 {
		t.Errorf("policies %v", now)
	}
	r := decoded[changed](t, unthrottle(t, "restore", "--json", "--state-dir", tr.StateDir), 0)
	if now := lists(); !maps.Equal(now, before) {
		t.Errorf("interrupts %v, before %v", now, before)
	}
	if now := policies(); now["rr 1"] > 0 {
		t.Errorf("policies %v; skipped %v", now, r.Skipped)
	}
	if now := tr.Settings(); now != settings {
		t.Errorf("not as before:\n%s\nwas\n%s", now, settings)
	}
}
