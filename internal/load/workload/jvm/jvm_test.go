package jvm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

func TestParsePause(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"[1.234s][info][gc] GC(7) Pause Young (Allocation Failure) 44M->12M(124M) 8.123ms": 8123 * time.Microsecond,
		"[0.010s][info][gc] GC(0) Pause Full (Ergonomics) 100M->90M(124M) 0.5ms":           500 * time.Microsecond,
		"[0.2s][info][gc] GC(3) Pause Remark 12M->12M(64M) 1.000ms  ":                      time.Millisecond,
		"[0.1s][info][gc] GC(2) Concurrent Mark Cycle 12.345ms":                            -1,
		"[0.006s][info][gc] Using Parallel":                                                -1,
		"ready":                                                                            -1,
		"GC(1) Pause Young 99999999999999999999.1ms":                                       -1,
		"GC(1) Pause Young ms":                                                             -1,
	} {
		got, ok := parsePause(line)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v, %v", line, got, ok)
		}
	}
}

func FuzzParsePause(f *testing.F) {
	f.Add("[1.234s][info][gc] GC(7) Pause Young (Allocation Failure) 44M->12M(124M) 8.123ms")
	f.Fuzz(func(t *testing.T, line string) {
		if d, ok := parsePause(line); ok && (d < 0 || d > 1e6*time.Second) {
			t.Errorf("%q: %v", line, d)
		}
	})
}

// needJVM returns the path of a program of the JDK.
func needJVM(t *testing.T, name string) string {
	t.Helper()
	require.JDK(t)
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("needs %s: not on PATH; runs on a host with a JDK", name)
	}
	return path
}

// The class in the tree is what its source says.
func TestClassIsItsSource(t *testing.T) {
	javac := needJVM(t, "javac")
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), javac, "--release", "8", "-g:none", "-d", dir,
		"Allocate.java").CombinedOutput(); err != nil {
		t.Skipf("needs a javac that compiles for Java 8: %s; runs with a JDK from 9 to 19", out)
	}
	built, err := os.ReadFile(filepath.Join(dir, "Allocate.class"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(built, class) {
		t.Error("Allocate.class is not Allocate.java: javac --release 8 -g:none -d . Allocate.java")
	}
}

// A real JVM collects, its pauses are read, and it ends with its pipe.
func TestPausesOfAJVM(t *testing.T) {
	java := needJVM(t, "java")
	p, err := Start("", Spec{Java: java, Threads: 2, Heap: 32 << 20, Live: 4 << 20, Run: 5 * time.Millisecond,
		Sleep: time.Millisecond, Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(); err != nil {
		t.Fatal(err)
	}
	from := workload.Now()
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for len(p.Pauses(from, workload.Now())) < 3 {
		if time.Now().After(deadline) {
			t.Fatalf("no three pauses; it said %q", p.words)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, took := range p.Pauses(from, workload.Now()) {
		if took <= 0 {
			t.Errorf("a pause of %v", took)
		}
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopped: %v", err)
	}
}
