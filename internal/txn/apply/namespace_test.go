package apply

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// partProc sees a part of the processes only, or cannot tell.
type partProc struct {
	modelProc
	err error
}

func (p partProc) AllProcesses() (bool, error) { return false, p.err }

// TestNothingIsMovedFromAnotherNamespace: cgroup.procs lists no process there, which must not pass for none to move.
func TestNothingIsMovedFromAnotherNamespace(t *testing.T) {
	for want, proc := range map[error]partProc{errNotAllProcesses: {}, os.ErrPermission: {err: os.ErrPermission}} {
		s := newScene(t, cgroup.V1)
		proc.modelProc = modelProc{k: s.k}
		before := fmt.Sprint(s.k.Snapshot())
		notSplit := s.env.Proc
		s.env.Proc = proc
		purpose, changes := s.pinAlone()
		_, planErr := Plan(s.env, purpose, changes)
		_, err := Apply(t.Context(), s.env, purpose, changes)
		for _, err := range []error{planErr, err} {
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if fmt.Sprint(s.k.Snapshot()) != before {
			t.Error("something was written")
		}
		// What needs no PIDs works.
		s.apply(s.pinA())

		// Taking a move back from there waits for a process that sees all.
		s.env.Proc = notSplit
		s.apply(s.pinAlone())
		s.env.Proc = proc
		r, err := Restore(t.Context(), s.env, Selector{})
		if !errors.As(err, new(*NotRestored)) || r.Verdict != verdictNotRestored || !strings.Contains(fmt.Sprint(r.Skipped), want.Error()) {
			t.Errorf("%q, skipped %v, %v", r.Verdict, r.Skipped, err)
		}
		s.env.Proc = notSplit
		_, err = Restore(t.Context(), s.env, Selector{})
		s.must(err)
		if after := fmt.Sprint(s.k.Snapshot()); after != before {
			t.Errorf("not as before:\n%s\n%s", before, after)
		}
	}
}

// TestAnotherPIDNamespace asks the kernel: a child in a PID namespace of its own.
func TestAnotherPIDNamespace(t *testing.T) {
	require.Root(t)
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		t.Fatal(err)
	}
	if all, err := NewProc("/proc").AllProcesses(); err != nil || all != (st.Ino == 0xEFFFFFFC) {
		t.Errorf("we see all: %v, %v; namespace %d", all, err, st.Ino)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+childLooker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	// A pipe that stays open: the child ends with it.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	cmd.Stdin, cmd.Stderr = r, io.Discard
	out, err := cmd.Output()
	if errors.Is(err, unix.EPERM) {
		t.Skip("no PID namespace can be made here")
	}
	if got := strings.TrimSpace(string(out)); err != nil || got != "false <nil>" {
		t.Errorf("a child in a namespace of its own: %q, %v", got, err)
	}
	if _, err := NewProc(t.TempDir()).AllProcesses(); err == nil {
		t.Error("told without a /proc")
	}
}
