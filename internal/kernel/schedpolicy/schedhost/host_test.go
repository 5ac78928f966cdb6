package schedhost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
)

// What this test's own thread has is read; ordinary policies are written and read back, and the nice value survives.
func TestOwnThread(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		h, tid := New("/proc"), unix.Gettid()
		// The tests may run under another policy, as test/idle does.
		if err := unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0); err != nil {
			t.Error(err)
		}
		before, err := h.Read(tid)
		if err != nil || before.Class != "other" {
			t.Errorf("%+v, %v", before, err)
			return
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, 7); err != nil {
			t.Error(err)
		}
		for _, p := range []schedpolicy.Policy{{Class: "batch"}, {Class: "other", ResetOnFork: true}} {
			if err := h.Write(tid, p); err != nil {
				t.Error(err)
			}
			if got, err := h.Read(tid); got != p || err != nil {
				t.Errorf("wrote %s, read %s, %v", p, got, err)
			}
		}
		// The system call gives 20 - nice.
		if raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err != nil || raw != 20-7 {
			t.Errorf("nice value %d, %v", 20-raw, err)
		}
		a, err := h.ID(tid)
		if b, again := h.ID(tid); err != nil || again != nil || a != b || a == 0 {
			t.Errorf("ids %d and %d, %v, %v", a, b, err, again)
		}
	}()
	<-done
}

func TestNoThread(t *testing.T) {
	h := New("/proc")
	const none = 1 << 30
	_, err := h.Read(none)
	_, idErr := h.ID(none)
	for _, err := range []error{err, idErr, h.Write(none, schedpolicy.Other)} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
	for _, p := range []schedpolicy.Policy{{Class: "deadline"}, {Class: "rr"}, {Class: "other", Priority: 1}, {Class: "x"}} {
		if err := h.Write(os.Getpid(), p); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
	if err := h.Write(0, schedpolicy.Other); err == nil {
		t.Error("0 stands for oneself, and is no thread here")
	}
	if !errors.Is(gone(unix.EPERM), schedpolicy.ErrRefused) || errors.Is(gone(unix.EINVAL), schedpolicy.ErrRefused) {
		t.Error("EPERM alone is a refusal")
	}
}

func TestBounded(t *testing.T) {
	proc := t.TempDir()
	h := New(proc)
	if _, err := h.Bounded(); err == nil {
		t.Error("no file and no error")
	}
	file := filepath.Join(proc, "sys/kernel/sched_rt_runtime_us")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"950000\n": true, "-1\n": false} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := h.Bounded(); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
