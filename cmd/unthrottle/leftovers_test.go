package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
)

// What killed runs left below a scope is removed by a restore with that scope,
// what lies elsewhere is not, and a wrong flag removes nothing.
func TestRestoreRemovesLeftoversInItsScope(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &ns); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("unthrottle-run-ab.%d.1.%d", ended.Process.Pid, ns.Ino)
	scope := tr.Make("scope")
	inside, outside := tr.Make("scope/"+name), tr.Make(name)
	left := func(path string) bool {
		return cgroup.Exists(tr.Host, cgroup.CPU, path) || cgroup.Exists(tr.Host, cgroup.CPUSet, path)
	}
	if r := unthrottle(t, "restore", "--scope", scope, "--state-dir="); r.code != exitFailure || !left(inside) {
		t.Errorf("a wrong flag: exit code %d, left %v", r.code, left(inside))
	}
	r := unthrottle(t, "restore", "--scope", scope, "--state-dir", tr.StateDir)
	if r.code != 0 || left(inside) || !strings.Contains(r.errors, "1 killed experiments") {
		t.Errorf("exit code %d, left %v: %s", r.code, left(inside), r.errors)
	}
	if !left(outside) {
		t.Error("one outside the scope was removed")
	}
}
