package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
)

// asNobody runs the program as a user without rights and without a home.
func asNobody(t *testing.T, args ...string) run {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	// By its descriptor, since the user may not enter the folder of the test's binary.
	cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", args...)
	cmd.ExtraFiles = []*os.File{self}
	cmd.Dir = "/"
	cmd.Env = []string{envMain + "=1", "COLUMNS=400", "HOME=/nonexistent", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if exit := new(exec.ExitError); !errors.As(cmd.Run(), &exit) && cmd.ProcessState == nil {
		t.Fatal("the program did not start")
	}
	return run{cmd.ProcessState.ExitCode(), out.String(), complaints.String()}
}

// A user without rights is told which one is missing and what to do, before the program records or asks. What root has in
// force is not denied.
func TestWithoutRights(t *testing.T) {
	tr := cgrouptest.New(t)
	busy := tr.Make("busy")
	tr.Limit(busy, 0.3)
	before := tr.Settings()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"fix " + busy + " --yes", exitFailure, "so nothing could be changed: run as root"},
		{"apply " + busy + " --remedy raise", exitFailure, "so nothing could be changed: run as root"},
		{"status", exitFine, "root's journal (/var/lib/unthrottle) is for root to read"},
		{"restore --dry-run", exitFine, "root's journal (/var/lib/unthrottle) is for root to read"},
		{"restore", exitFailure, "run as root"},
		{"forecast " + busy + " --for 1s", exitNotMeasurable, "run as root"},
		{"explain " + busy + " --at 1m", exitNotMeasurable, "run as root"},
	} {
		r := asNobody(t, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.errors, c.says) {
			t.Errorf("%s: exit code %d, want %d, and %q in\n%s%s", c.args, r.code, c.code, c.says, r.out, r.errors)
		}
		if strings.Contains(r.errors, "looking at") {
			t.Errorf("%s: it records although it could change nothing: %s", c.args, r.errors)
		}
	}
	if r := asNobody(t, "ls", "--below", tr.Top, "--for", "200ms"); r.code != 0 || !strings.Contains(r.out, filepath.Base(busy)) {
		t.Errorf("ls: %+v", r)
	}
	if got := tr.Settings(); got != before {
		t.Errorf("settings\n%s\nwere\n%s", got, before)
	}
}
