package schedpolicy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPolicyText(t *testing.T) {
	for text, want := range map[string]Policy{
		"other": Other, "rr 1": Realtime, "fifo 99 reset_on_fork": {"fifo", 99, true}, "idle reset_on_fork": {"idle", 0, true},
	} {
		if got, err := Parse(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "rr", "rr 0", "rr 100", "rr 1 2", "other 1", "reset_on_fork", "nonsense", "rr -1"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
	kept := Policy{"other", 0, true}.As(Realtime)
	if !kept.Same(Realtime) || kept == Realtime || kept.Same(Other) || !kept.BeforeOthers() || Other.BeforeOthers() {
		t.Errorf("%+v", kept)
	}
}

func TestThreadNames(t *testing.T) {
	if tid, ok := Thread(File(17)); !ok || tid != 17 {
		t.Error(tid, ok)
	}
	for _, bad := range []string{Rest, "thread/", "thread/0", "thread/-1", "thread/017", "thread/1/2", "17", "thread/99999999999"} {
		if _, ok := Thread(bad); ok {
			t.Errorf("%q names a thread", bad)
		}
	}
}

// Reads the policy of the test's own thread, writes ordinary policies and reads them back. The nice value survives.
func TestOwnThread(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		h, tid := NewHost("/proc"), unix.Gettid()
		before, err := h.Read(tid)
		if err != nil || before.Class != "other" {
			t.Errorf("%+v, %v", before, err)
			return
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, 7); err != nil {
			t.Error(err)
		}
		for _, p := range []Policy{{Class: "batch"}, {Class: "other", ResetOnFork: true}} {
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
	h := NewHost("/proc")
	const none = 1 << 30
	_, err := h.Read(none)
	_, idErr := h.ID(none)
	for _, err := range []error{err, idErr, h.Write(none, Other)} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
	for _, p := range []Policy{{Class: "deadline"}, {Class: "rr"}, {Class: "other", Priority: 1}, {Class: "x"}} {
		if err := h.Write(os.Getpid(), p); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
	if err := h.Write(0, Other); err == nil {
		t.Error("0 means the caller, and is no thread here")
	}
	if !errors.Is(gone(unix.EPERM), ErrRefused) || errors.Is(gone(unix.EINVAL), ErrRefused) {
		t.Error("EPERM alone is a refusal")
	}
}

func TestBounded(t *testing.T) {
	proc := t.TempDir()
	h := NewHost(proc)
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

func FuzzParse(f *testing.F) {
	for _, text := range []string{"other", "rr 1", "fifo 99 reset_on_fork", "rr 256", " "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if back, err := Parse(p.String()); err != nil || back != p {
			t.Fatalf("%q: %+v became %+v, %v", text, p, back, err)
		}
	})
}
