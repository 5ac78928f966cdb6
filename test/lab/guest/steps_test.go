package guest

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// TestSteps has one reaper for all steps, as a guest has. It reaps every child of this process, so no other code may
// start any.
func TestSteps(t *testing.T) {
	require.Kernel(t)
	r := startReaper()
	r.quitGrace = 100 * time.Millisecond
	t.Setenv("FROM_INIT", "yes")
	for name, c := range map[string]struct {
		step           wire.Step
		stdout, stderr string
		want           wire.ExitStatus
	}{
		"output and code": {wire.Step{Argv: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}}, "out\n",
			"err\n", wire.ExitStatus{Code: 3}},
		"environment": {wire.Step{Argv: []string{"sh", "-c", "echo $FROM_INIT $A"}, Env: []string{"A=b"}},
			"yes b\n", "", wire.ExitStatus{}},
		"folder": {wire.Step{Argv: []string{"sh", "-c", "pwd"}, Dir: "/"}, "/\n", "", wire.ExitStatus{}},
		"signal": {wire.Step{Argv: []string{"sh", "-c", "kill -SEGV $$"}}, "", "",
			wire.ExitStatus{Code: -1, Signal: "SIGSEGV"}},
		"limit": {wire.Step{Argv: []string{"sleep", "60"}, LimitSec: 1}, "", "",
			wire.ExitStatus{Code: -1, Signal: "SIGQUIT", Limit: true}},
		"stubborn": {wire.Step{Argv: []string{"sh", "-c", "trap '' QUIT; sleep 60; sleep 60"},
			LimitSec: 1}, "", "", wire.ExitStatus{Code: -1, Signal: "SIGKILL", Limit: true}},
		"orphan with our output": {wire.Step{Argv: []string{"sh", "-c", "(sleep 5 &) ; echo done"}}, "done\n", "", wire.ExitStatus{}},
	} {
		var stdout, stderr bytes.Buffer
		got := r.run(c.step, &stdout, &stderr)
		got.WallUsec = 0
		if got != c.want || stdout.String() != c.stdout || stderr.String() != c.stderr {
			t.Errorf("%s: got %+v %q %q, want %+v %q %q", name, got, &stdout, &stderr, c.want, c.stdout, c.stderr)
		}
	}
	for _, argv := range [][]string{nil, {"no-such-command-here"}} {
		if got := r.run(wire.Step{Argv: argv}, nil, nil); got.NotRun == "" {
			t.Errorf("%q: got %+v", argv, got)
		}
	}
}

func TestInsideIsForProcessOne(t *testing.T) {
	if os.Getpid() != 1 && Inside() {
		t.Error("a test took itself for the guest's first process")
	}
}

func TestSendFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/a/b", []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	if err := sendFiles(wire.NewWriter(&sent), dir); err != nil {
		t.Fatal(err)
	}
	if want := "filename 0 3\na/bfiledata 0 4\ntext"; sent.String() != want {
		t.Errorf("got %q, want %q", &sent, want)
	}
	if err := loadModules(dir); err != nil {
		t.Errorf("no modules: %v", err)
	}
	if _, err := openPort(0); err == nil || !strings.Contains(err.Error(), wire.PortName) {
		t.Errorf("openPort without a port: %v", err)
	}
}
