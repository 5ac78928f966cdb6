package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/cure/holder"
	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// until waits for something that comes soon, for much longer than it takes.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// A throttled container becomes narrow by sched_ext: never wider than its limit, not stopped any more, with its quota
// written still. The holder is killed, and the quota stops it again. Narrow comes again and is restored, and the holder ends.
func TestNarrowBySchedExtInTheLab(t *testing.T) {
	require.Root(t)
	require.CPUs(t, 8)
	require.CgroupV2(t)
	require.SchedExt(t)
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
	narrow := func() txn.Narrow {
		t.Helper()
		decoded[changed](t, unthrottle(t, "apply", web, "--remedy", "narrow", "--via", "sched_ext", "--credit", "1ms", "--state-dir", tr.StateDir, "--json"), 0)
		return *decoded[statusDocument](t, unthrottle(t, "status", "--json", "--state-dir", tr.StateDir), 0).InForce[0].Narrow
	}
	status := narrow()
	if !loaded() || status.InForce == nil || !*status.InForce || status.CapCPUs != 2 || tr.Settings() != settings {
		t.Fatalf("loaded %v, %+v; settings\n%s\nwere\n%s", loaded(), status, tr.Settings(), settings)
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
	var wider, all int64
	for level, ns := range counts.WidthNS {
		if all += ns; level > 2 {
			wider += ns
		}
	}
	t.Logf("width %v, throttled periods %d and %d, %s", counts.WidthNS, before, throttled(), unthrottle(t, "status", "--state-dir", tr.StateDir).out)
	if all == 0 || float64(wider) > 0.02*float64(all) {
		t.Errorf("wider than 2 for %v of %v", time.Duration(wider), time.Duration(all))
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
	until(t, "the kernel's own scheduler is back", func() bool { return !loaded() })
	killed := throttled()
	until(t, "the quota is enforced again", func() bool { return throttled() > killed })
	after := unthrottle(t, "status", "--json", "--state-dir", tr.StateDir)
	if n := decoded[statusDocument](t, after, 0).InForce[0].Narrow; n.InForce == nil || *n.InForce || n.Widest != nil {
		t.Errorf("%+v", n)
	}
	if !strings.Contains(after.errors, "has ended (it was killed") {
		t.Errorf("%s", after.errors)
	}
	restore := func() {
		t.Helper()
		r := decoded[changed](t, unthrottle(t, "restore", "--json", "--state-dir", tr.StateDir), 0)
		if now := tr.Settings(); now != settings || len(r.Skipped) > 0 {
			t.Errorf("%+v; not as before:\n%s\nwas\n%s", r, now, settings)
		}
	}
	restore()

	if status := narrow(); status.InForce == nil || !*status.InForce {
		t.Errorf("after the kill: %+v", status)
	}
	restore()
	until(t, "the holder ends by itself", func() bool { return !loaded() })
	if note, err := holder.ReadNote(tr.StateDir); note != nil || err != nil {
		t.Errorf("%+v, %v", note, err)
	}
}
