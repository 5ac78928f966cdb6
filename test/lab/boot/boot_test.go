package boot

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// fake is a guest whose QEMU is a shell script. $frames is the path for its frames.
func fake(dir, script string) (Guest, error) {
	header := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	var program bytes.Buffer
	if err := binary.Write(&program, binary.LittleEndian, header); err != nil {
		return Guest{}, err
	}
	path := filepath.Join(dir, "static")
	if err := os.WriteFile(path, program.Bytes(), 0o755); err != nil {
		return Guest{}, err
	}
	machine, err := lab.ParseMachine("2", 1, lab.NUMANone)
	return Guest{
		Machine: machine,
		QEMU: func(ctx context.Context, args ...string) *exec.Cmd {
			return exec.CommandContext(ctx, "sh", append([]string{"-c", "frames=/proc/self/fd/4; " + script, "qemu"}, args...)...)
		},
		Init: path, Busybox: path, Vmlinux: "vmlinux",
		Plan:  wire.Plan{Steps: []wire.Step{{Argv: []string{"true"}}}},
		Limit: time.Minute,
	}, err
}

func mustFake(t *testing.T, script string) Guest {
	t.Helper()
	g, err := fake(t.TempDir(), script)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const goodFrames = `printf 'booted 0 18\n{"release":"6.18"}stdout 0 3\nhi\nstderr 0 1\n!exit 0 10\n{"code":7}filename 0 3\na/bfiledata 0 2\nokdone 0 0\n' > $frames`

func TestRun(t *testing.T) {
	require.Kernel(t)
	g := mustFake(t, `[ -s /proc/self/fd/3 ] || exit 9; echo "$@" >&2; `+goodFrames)
	var stdout, stderr bytes.Buffer
	g.Stdout = func(int) io.Writer { return &stdout }
	g.Stderr = func(int) io.Writer { return &stderr }
	g.OutDir = filepath.Join(t.TempDir(), "out")
	result, err := Run(context.Background(), g)
	if err != nil {
		t.Fatal(err)
	}
	if stdout.String() != "hi\n" || stderr.String() != "!" || result.Exits[0].Code != 7 || result.Facts.Release != "6.18" {
		t.Errorf("got %q %q %+v", &stdout, &stderr, result)
	}
	if text, err := os.ReadFile(filepath.Join(g.OutDir, "a/b")); string(text) != "ok" {
		t.Errorf("file from the guest: %q %v", text, err)
	}
}

func TestRunThatFails(t *testing.T) {
	require.Kernel(t)
	for name, c := range map[string]struct {
		script, want string
		is           error
	}{
		"hangs":  {"echo the kernel says; exec sleep 300", "within its limit of 1s", ErrLimit},
		"panics": {"echo the kernel says", "ended before its plan", ErrGuest},
		"QEMU refuses": {"echo the kernel says; echo warning: TCG doesn\\'t support requested feature >&2; " +
			"echo bad option >&2; exit 1", "exit status 1", ErrGuest},
		"ends within frame":  {"echo the kernel says; printf 'stdout 0 9\\nx' > $frames", "ended before its plan", ErrGuest},
		"speaks nonsense":    {"echo the kernel says; echo hello > $frames; exec sleep 300", `frame header "hello"`, nil},
		"speaks of step 5":   {"echo the kernel says; printf 'stdout 5 0\\n' > $frames; exec sleep 300", "step 5 of 1", nil},
		"exit without sense": {"echo the kernel says; printf 'exit 0 1\\n{' > $frames; exec sleep 300", "exit", nil},
		"cannot":             {"echo the kernel says; printf 'broken 0 3\\nwhy' > $frames; exec sleep 300", "follow its plan: why", nil},
		"file outside": {"echo the kernel says; printf 'filename 0 6\\n../etc' > $frames; exec sleep 300",
			"outside the output folder", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := mustFake(t, c.script)
			g.OutDir = t.TempDir()
			if c.is == ErrLimit {
				g.Limit = time.Second
			}
			result, err := Run(context.Background(), g)
			var failure *Failure
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || !errors.As(err, &failure) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if failure.Console != "the kernel says\n" || strings.Contains(failure.QEMU, "TCG") {
				t.Errorf("console %q, QEMU %q", failure.Console, failure.QEMU)
			}
			if result.Exits[0].NotRun == "" {
				t.Errorf("a step that did not end has status %+v", result.Exits[0])
			}
		})
	}
}

// A guest that does not boot is started again, a few times.
func TestAGuestThatDoesNotBoot(t *testing.T) {
	require.Kernel(t)
	for _, tc := range []struct {
		name, script string
		boots        int
		is           error
	}{
		{"never", "exec sleep 300", mostBoots, ErrNoBoot},
		{"the second time", "if [ $(wc -c < $boots) -lt 2 ]; then exec sleep 300; fi; " + goodFrames, 2, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "boots")
			g := mustFake(t, "boots="+file+"; printf . >> $boots; "+tc.script)
			g.OutDir, g.BootLimit = t.TempDir(), 500*time.Millisecond
			told := 0
			g.NotBooted = func(error) { told++ }
			_, err := Run(context.Background(), g)
			boots, readErr := os.ReadFile(file)
			if !errors.Is(err, tc.is) || readErr != nil || len(boots) != tc.boots || told != tc.boots-1 {
				t.Errorf("%v after %d boots, told %d times, %v", err, len(boots), told, readErr)
			}
		})
	}
}

func TestRunIsInterrupted(t *testing.T) {
	require.Kernel(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	g := mustFake(t, "echo $$ > "+pidFile+"; exec sleep 300")
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, err := Run(ctx, g); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if pid := readPID(t, pidFile); syscall.Kill(pid, 0) == nil {
		t.Errorf("QEMU (process %d) is still there", pid)
	}
}

func TestInitMustBeStatic(t *testing.T) {
	g := mustFake(t, "exit 0")
	g.Init = "/bin/sh"
	if _, err := Run(context.Background(), g); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("got %v", err)
	}
}

const envKilled = "UNTHROTTLE_BOOT_TEST_DIR"

// TestKilledLabLeavesNoQEMU kills a lab with SIGKILL, which it cannot handle.
func TestKilledLabLeavesNoQEMU(t *testing.T) {
	require.Kernel(t)
	if dir := os.Getenv(envKilled); dir != "" {
		g, err := fake(dir, "echo $$ > "+filepath.Join(dir, "pid.new")+"; mv "+filepath.Join(dir, "pid.new")+" "+
			filepath.Join(dir, "pid")+"; exec sleep 300")
		if err == nil {
			_, err = Run(context.Background(), g)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	dir := t.TempDir()
	labProcess := exec.Command(os.Args[0], "-test.run=^TestKilledLabLeavesNoQEMU$")
	labProcess.Env = append(os.Environ(), envKilled+"="+dir)
	labProcess.Stderr = os.Stderr
	if err := labProcess.Start(); err != nil {
		t.Fatal(err)
	}
	pid := readPID(t, filepath.Join(dir, "pid"))
	if err := labProcess.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = labProcess.Wait()
	for range 200 {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z ") {
			return // gone, or a zombie that an init has yet to reap
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("QEMU (process %d) outlived the lab", pid)
}

func readPID(t *testing.T, file string) int {
	t.Helper()
	for range 200 {
		if text, err := os.ReadFile(file); err == nil {
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil || pid < 2 {
				t.Fatalf("%s: %q %v", file, text, err)
			}
			return pid
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the stand-in for QEMU did not start")
	return 0
}

func TestTail(t *testing.T) {
	var also bytes.Buffer
	tl := &tail{limit: 4, also: &also}
	for _, s := range []string{"abc", "defgh", "ij", "klmnopqrstuv"} {
		fmt.Fprint(tl, s)
	}
	if tl.String() != "stuv" || also.Len() != 22 || len(tl.kept) > 2*tl.limit {
		t.Errorf("kept %q of %d", tl.String(), also.Len())
	}
}
