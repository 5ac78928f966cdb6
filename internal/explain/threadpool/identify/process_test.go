package identify

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

func TestEnvironment(t *testing.T) {
	env, err := Environment(os.Getpid())
	if err != nil || len(env) == 0 || len(env) > len(os.Environ()) {
		t.Errorf("%d variables, %v", len(env), err)
	}
	if _, err := Environment(1 << 30); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v", err)
	}
}

func TestLookAtOurselves(t *testing.T) {
	p, err := Look(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if p.TGID != os.Getpid() || p.Exe != exe || !slices.Equal(p.Cmdline, os.Args) || p.Libraries == nil {
		t.Errorf("%+v", p)
	}
	if p.Go != runtime.Version() {
		t.Errorf("built by %q, want %q", p.Go, runtime.Version())
	}
	comm := filepath.Base(exe)
	comm = comm[:min(len(comm), threadpool.CommBytes)]
	rows := threadpool.Known().Match(comm, &p)
	if len(rows) == 0 || rows[0].Key != "go" {
		t.Errorf("%q of %+v: %v", comm, p, rows)
	}
}

func TestLookAtOthers(t *testing.T) {
	sleeper := start(t, nil, "", "sleep", "600")
	t.Cleanup(func() { sleeper.Process.Kill() })
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		t.Fatal(err)
	}
	p, err := Look(sleeper.Process.Pid)
	if err != nil || p.Exe != path || p.Go != "" || len(p.Holds) != 0 || len(p.Cmdline) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Look(1<<22 + 1); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("no process: %v", err)
	}
	kthread, err := Look(2)
	if err == nil && (kthread.Exe != "" || kthread.Go != "") {
		t.Errorf("kernel thread: %+v", kthread)
	}
}

// TestLookWithoutRights: what may not be read is not known, and said, while the rest counts.
func TestLookWithoutRights(t *testing.T) {
	require.Root(t)
	sleeper := start(t, nil, "", "sleep", "600")
	t.Cleanup(func() { sleeper.Process.Kill() })
	var p threadpool.Process
	err := asUser(otherUser, otherGroup, func() (err error) {
		p, err = Look(sleeper.Process.Pid)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "root can") || !errors.Is(err, os.ErrPermission) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("error: %v", err)
	}
	err = asUser(otherUser, otherGroup, func() error {
		_, err := JVM(context.Background(), sleeper.Process.Pid)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "run as root, or as its user") {
		t.Errorf("asked without rights: %v", err)
	}
	if p.Comm != "sleep" || len(p.Cmdline) != 2 || p.Exe != "" || p.Libraries != nil {
		t.Errorf("%+v", p)
	}
}

func TestLookAtAJVM(t *testing.T) {
	require.Root(t)
	javas := require.JDK(t)
	cmd := start(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherGroup}}, "ready",
		named(t, javas[0], "-XX:ActiveProcessorCount=3")...)
	p, err := Look(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if p.CPUsItSees["jvm"] != 3 {
		t.Errorf("told %v CPUs", p.CPUsItSees)
	}
	rows := threadpool.Known().Match("C1 CompilerThre", &p)
	if len(rows) != 1 || rows[0].Because != "its name, and the program is java" {
		t.Errorf("%+v", rows)
	}
	p.Exe, p.Comm = "/opt/app", "app" // a program that embeds a JVM
	if rows := threadpool.Known().Match("parallel-1", &p); len(rows) != 1 || rows[0].Because != "its name, and libjvm.so is mapped" {
		t.Errorf("%+v", rows)
	}
}

func TestHolds(t *testing.T) {
	text := []byte("/home/u/.cargo/registry/src/index-1/rayon-core-1.12.1/src/registry.rs")
	for _, at := range []int{0, 5, scanStep - 30, scanStep - 25, scanStep, 3*scanStep + 7} {
		file := append(bytes.Repeat([]byte{'x'}, at), text...)
		if got, err := holds(bytes.NewReader(file)); err != nil || !slices.Equal(got, []string{"rayon"}) {
			t.Errorf("at %d: %v, %v", at, got, err)
		}
	}
	if got, err := holds(bytes.NewReader(bytes.Repeat([]byte{'x'}, 2*scanStep))); err != nil || got != nil {
		t.Errorf("none: %v, %v", got, err)
	}
}

// endless is a file of any size.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

func TestHoldsIsBounded(t *testing.T) {
	e := &endless{}
	if _, err := holds(e); err != nil || e.read > maxScan {
		t.Errorf("%d bytes read, %v", e.read, err)
	}
}

func FuzzGoVersion(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Add([]byte("\xff Go buildinf:\x08\x02"))
	f.Fuzz(func(t *testing.T, file []byte) { goBuild(bytes.NewReader(file)) })
}

// What the environment tells a runtime counts, of a running program too.
func TestLookAtAnEnvironment(t *testing.T) {
	t.Setenv("GODEBUG", "containermaxprocs=0,x=1,updatemaxprocs=0")
	t.Setenv("GOMAXPROCS", "+3")
	t.Setenv("JAVA_TOOL_OPTIONS", "-XX:ActiveProcessorCount=0x5")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run", "^TestWaitsForItsInput$")
	cmd.Env = append(os.Environ(), "WAITS=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	p, err := Look(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if p.GoRules() != "go1.24" || p.FollowsLimit() || p.CPUsItSees["go"] != 3 || p.CPUsItSees["jvm"] != 5 || len(p.CPUsItSees) != 3 {
		t.Errorf("rules of %q by %q, told %v", p.GoRules(), p.GoDebug, p.CPUsItSees)
	}
}

// It is no test but the program of one.
func TestWaitsForItsInput(t *testing.T) {
	if os.Getenv("WAITS") == "" {
		return
	}
	io.Copy(io.Discard, os.Stdin)
}

// A program of an older language version counts CPUs by the rules of that version, whichever Go built it.
func TestGoLine(t *testing.T) {
	for line, want := range map[string]string{"1.24": "go1.24", "1.26": runtime.Version()} {
		dir := t.TempDir()
		for name, text := range map[string]string{"go.mod": "module m\ngo " + line + "\n", "main.go": "package main\nfunc main() {}\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-o", "program", ".")
		build.Dir, build.Env = dir, append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		f, err := os.Open(filepath.Join(dir, "program"))
		if err != nil {
			t.Fatal(err)
		}
		var p threadpool.Process
		p.Go, p.GoDebug = goBuild(f)
		f.Close()
		if p.Go != runtime.Version() || p.GoRules() != want || p.FollowsLimit() != (line != "1.24") {
			t.Errorf("go %s: built by %q with %q, rules of %q, want %q", line, p.Go, p.GoDebug, p.GoRules(), want)
		}
	}
}
