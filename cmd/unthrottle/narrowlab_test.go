package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/txn/holder"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/wait"
)

// A throttled container becomes narrow by sched_ext: never wider than its limit, not stopped any more, with its quota
// written still. The holder is killed, and the quota stops it again. Restore leaves everything as it was.
func TestNarrowBySchedExtInTheLab(t *testing.T) {
	require.Root(t)
	require.CPUs(t, 8)
	require.CgroupV2(t)
	require.SchedExt(t)
	require.Slow(t)
	tr := cgrouptest.New(t)
	web := tr.Make("pod/web")
	tr.Limit(web, 2)
	tr.Work(web, 8)
	id, err := tr.Host.ID(cgroup.CPU, web)
	if err != nil {
		t.Fatal(err)
	}
	throttled := func() uint64 {
		stat, err := cgroup.ReadStat(tr.Host, cgroup.Group{Path: web})
		if err != nil {
			t.Fatal(err)
		}
		return stat.ThrottledPeriods
	}
	loaded := func() bool {
		state, err := os.ReadFile("/sys/kernel/sched_ext/state")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(state)) == "enabled"
	}
	settings := tr.Settings()
	decoded[changed](t, unthrottle(t, "apply", web, "--remedy", "narrow", "--via", "sched_ext", "--credit", "1ms",
		"--state-dir", tr.StateDir, "--json"), 0)
	if !loaded() || tr.Settings() != settings {
		t.Fatalf("loaded %v; settings\n%s\nwere\n%s", loaded(), tr.Settings(), settings)
	}

	p, err := probe.Open(probe.Options{WidthOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Watch(probe.Container{ID: id, Path: web}); err != nil {
		t.Fatal(err)
	}
	before := throttled()
	time.Sleep(2 * time.Second)
	counts, err := p.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	var used, all float64
	for level, ns := range counts.WidthNS {
		used, all = used+float64(level)*float64(ns), all+float64(ns)
	}
	own, ok, err := holder.New(tr.StateDir).Counts(id)
	t.Logf("width %v, mean %.3f; throttled periods %d and %d; %+v, %v", counts.WidthNS, used/all, before, throttled(), own, err)
	if !ok || own.AtCap == 0 || own.Waited == 0 {
		t.Error("the scheduler counts nothing of it")
	}
	if !(used/all > 1 && used/all <= 2.5) { // a short window takes saved time beside the limit; 8 threads want 8 CPUs
		t.Errorf("it used %.2f CPUs of 2", used/all)
	}
	if now := throttled(); now > before {
		t.Errorf("throttled in %d periods", now-before)
	}

	note, err := holder.ReadNote(tr.StateDir)
	if err != nil || note == nil {
		t.Fatalf("%+v, %v", note, err)
	}
	if err := unix.Kill(note.Process.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the kernel's own scheduler is back", func() bool { return !loaded() })
	killed := throttled()
	wait.Until(t, "the quota is enforced again", func() bool { return throttled() > killed })
	after := unthrottle(t, "status", "--json", "--state-dir", tr.StateDir)
	if n := decoded[statusDocument](t, after, 0).InForce[0].Narrow; n == nil || n.InForce == nil || *n.InForce ||
		n.Widest != nil || n.CapCPUs != 2 {
		t.Errorf("%+v", n)
	}
	if !strings.Contains(after.errors, "has ended (it was killed") {
		t.Errorf("%s", after.errors)
	}
	r := decoded[changed](t, unthrottle(t, "restore", "--json", "--state-dir", tr.StateDir), 0)
	if now := tr.Settings(); now != settings || len(r.Skipped) > 0 {
		t.Errorf("%+v; not as before:\n%s\nwas\n%s", r, now, settings)
	}
}
